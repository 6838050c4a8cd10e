"""Connections over real TLS: who says nothing, or not all, is put out, and holds nobody up."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from deploy.certificates import Certificates, ensure_certificates
from deploy.ports import LOOPBACK
from secadmin.service import open_requests
from secadmin.service.body_limit import BodyLimit
from secadmin.service.door import KNOWN, Door, DoorLimits, tls_context
from secadmin.service.open_requests import OpenRequests
from secadmin.service.token_checks import TokenChecks
from tests.waiting import PATIENCE_S, wait_until

LONG = DoorLimits(handshake_s=60, head_s=60, body_s=60, strangers=10, known=4)
HALF_HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
HALF_BODY = HALF_HEAD.replace(b"GET", b"POST") + b"Content-Length: 10\r\n\r\n01234"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body's length. Who asks for /known has shown a valid token."""
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    if scope["path"] == "/known":
        scope["state"][KNOWN] = True
    text = str(length).encode()
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@dataclass(frozen=True)
class Server:
    """A server that runs, and how to reach it."""

    door: Door
    port: int
    trust: ssl.SSLContext

    def silent(self) -> socket.socket:
        """A connection that says nothing."""
        return socket.create_connection((LOOPBACK, self.port), PATIENCE_S)

    def says(self, text: bytes) -> socket.socket:
        """A connection over TLS that says this, and no more."""
        secured = self.trust.wrap_socket(self.silent(), server_hostname="localhost")
        secured.sendall(text)
        return secured

    def http(self) -> http.client.HTTPSConnection:
        """A client."""
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=PATIENCE_S, context=self.trust
        )

    def waiting(self, count: int) -> None:
        """Wait until so many connections wait."""
        wait_until(lambda: len(self.door.room) == count, f"{count} connections wait")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return ensure_certificates(tmp_path_factory.mktemp("certificates"))


class Serve(Protocol):
    """Starts servers, which end with the test."""

    def __call__(self, limits: DoorLimits, app: ASGIApp = echo) -> Server: ...


@pytest.fixture
def serve(certificates: Certificates) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(limits: DoorLimits, app: ASGIApp = echo) -> Server:
            return stack.enter_context(_served(certificates, limits, app))

        yield start


@contextmanager
def _served(certificates: Certificates, limits: DoorLimits, app: ASGIApp) -> Iterator[Server]:
    own = certificates.secadmin
    door = Door(tls_context(str(own.certificate), str(own.key)), limits)
    config = uvicorn.Config(
        app,
        host=LOOPBACK,
        port=0,
        http=cast(type[asyncio.Protocol], door.protocol),
        ws="none",
        lifespan="off",
        log_level="error",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the server serves")
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Server(door, port, ssl.create_default_context(cafile=str(certificates.ca)))
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def is_put_out(connection: socket.socket) -> bool:
    """Whether the server has ended the connection, which is waited for."""
    connection.settimeout(PATIENCE_S)
    try:
        return connection.recv(1_000) == b""
    except ConnectionError:
        return True


def ask(client: http.client.HTTPSConnection, path: str = "/", body: bytes = b"") -> str:
    client.request("POST", path, body)
    answer = client.getresponse()
    assert answer.status == 200
    return answer.read().decode()


def test_requests_are_served_one_after_the_other_on_a_connection(serve: Serve) -> None:
    server = serve(LONG)
    with closing(server.http()) as client:
        assert [ask(client, body=b"x" * size) for size in (0, 10, 300_000)] == ["0", "10", "300000"]
        server.waiting(1)
    server.waiting(0)
    both = HALF_BODY + b"56789" + HALF_HEAD + b"Connection: close\r\n\r\n"
    with closing(server.says(both)) as pipelined, pipelined.makefile("rb") as answers:
        assert answers.read().count(b"200 OK") == 2
    server.waiting(0)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (DoorLimits(handshake_s=0.2, head_s=60, body_s=60), None),
        (DoorLimits(handshake_s=60, head_s=0.2, body_s=60), None),
        (DoorLimits(handshake_s=60, head_s=0.5, body_s=60), b""),
        (DoorLimits(handshake_s=60, head_s=0.5, body_s=60), HALF_HEAD),
        (DoorLimits(handshake_s=60, head_s=60, body_s=0.2), HALF_BODY),
    ],
    ids=["no TLS", "no TLS before the head's time", "no head", "half a head", "half a body"],
)
def test_who_does_not_go_on_in_time_is_put_out(
    serve: Serve, limits: DoorLimits, said: bytes | None
) -> None:
    server = serve(limits)
    with closing(server.silent() if said is None else server.says(said)) as connection:
        assert is_put_out(connection)
    server.waiting(0)


def test_bytes_that_drip_do_not_put_the_deadline_off(serve: Serve) -> None:
    server = serve(DoorLimits(head_s=0.5))
    with closing(server.says(HALF_HEAD)) as connection:

        def drips() -> bool:
            try:
                connection.sendall(b"x: y\r\n")
            except OSError:
                return False
            return True

        wait_until(lambda: not drips(), "it is put out")


def test_of_too_many_the_one_that_waited_longest_goes(serve: Serve) -> None:
    server = serve(LONG)
    with ExitStack() as stack:
        silent: list[socket.socket] = []
        for count in range(LONG.strangers):
            silent.append(stack.enter_context(closing(server.silent())))
            server.waiting(count + 1)
        with closing(server.http()) as client:
            assert ask(client) == "0"
            assert is_put_out(silent[0])
            # Whoever is half-way counts as well, and goes as well.
            half = [stack.enter_context(closing(server.says(HALF_BODY))) for _ in range(30)]
            assert is_put_out(silent[-1]) and is_put_out(half[0])
        with closing(server.http()) as client:
            assert ask(client) == "0"


def test_who_has_shown_a_valid_token_stays(serve: Serve) -> None:
    server = serve(LONG)
    with closing(server.http()) as client, ExitStack() as stack:
        ask(client, "/known")
        own = client.sock
        for _ in range(3 * LONG.strangers):
            stack.enter_context(closing(server.silent()))
        server.waiting(LONG.strangers + 1)
        assert ask(client, "/known") == "0"
        assert client.sock is own


@pytest.mark.parametrize("header", [b"", b"Authorization: Bearer x\r\n"])
def test_half_a_body_is_no_open_request(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, header: bytes
) -> None:
    monkeypatch.setattr(open_requests, "MOST_OPEN", 2)
    checks = TokenChecks(lambda token: False)
    server = serve(LONG, BodyLimit(OpenRequests(echo, checks), checks))
    with ExitStack() as stack:
        said = HALF_BODY.replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n")
        half = [stack.enter_context(closing(server.says(said))) for _ in range(8)]
        server.waiting(len(half))
        with closing(server.http()) as client:
            assert ask(client, body=b"x" * 10) == "10"
        half[0].sendall(b"56789")
        with half[0].makefile("rb") as answer:
            assert b"200 OK" in answer.readline()


def test_what_is_no_tls_disturbs_nobody(serve: Serve, tmp_path: Path) -> None:
    server = serve(LONG)
    with closing(server.silent()) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        plain.settimeout(PATIENCE_S)
        while plain.recv(1_000):
            pass
    server.waiting(0)
    with closing(server.http()) as client:
        assert ask(client) == "0"
