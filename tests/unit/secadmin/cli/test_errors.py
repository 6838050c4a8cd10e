"""Every failure is one line that says what to do, and an exit code."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from catalog import errors
from deploy.certificates import ensure_certificates
from secadmin.cli.context import Seams
from tests.unit.secadmin.cli.running import Terminal, answering, problem

STATUSES = [
    (400, 2),
    (413, 2),
    (422, errors.InvalidInput.exit_code),
    (403, errors.Denied.exit_code),
    (404, errors.NotFound.exit_code),
    (409, errors.Conflict.exit_code),
    (503, errors.Unavailable.exit_code),
    (500, errors.PlatformError.exit_code),
]


def one_line(output: str) -> str:
    """The output, which must be a single line."""
    assert output.count("\n") == 1, output
    return output


@pytest.mark.parametrize(("status", "code"), STATUSES)
def test_a_problem_document_is_a_line_and_an_exit_code(
    tmp_path: Path, status: int, code: int
) -> None:
    terminal = answering(tmp_path / "p", lambda _: problem(status, "so it is")).with_session()
    result = terminal.run("catalog")
    assert (result.exit_code, result.stdout) == (code, "")
    assert one_line(result.stderr) == "error: so it is\n"


def test_an_ended_session_says_to_log_in(tmp_path: Path) -> None:
    terminal = answering(tmp_path / "p", lambda _: problem(401, "x")).with_session()
    result = terminal.run("catalog")
    assert result.exit_code == errors.NotAuthenticated.exit_code
    assert "log in again: secadmin login" in one_line(result.stderr)


def test_no_session_says_to_log_in(tmp_path: Path) -> None:
    result = Terminal(tmp_path / "p", Seams()).run("catalog")
    assert result.exit_code == errors.NotAuthenticated.exit_code
    assert "secadmin login USER" in one_line(result.stderr)


def test_a_token_is_never_sent_to_another_server(tmp_path: Path) -> None:
    terminal = answering(tmp_path / "p", lambda _: pytest.fail("a call")).with_session()
    result = terminal.run("catalog", "--server", "https://elsewhere:8443")
    assert result.exit_code == errors.NotAuthenticated.exit_code
    assert "log in there" in one_line(result.stderr)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "localhost:1", "https://a/path", "https://u:p@a", "ftp://a", ":"]
)
def test_a_server_is_https_and_nothing_more(tmp_path: Path, url: str) -> None:
    result = Terminal(tmp_path / "p", Seams()).run(
        "login", "bob", "--password-stdin", "--server", url, text="x\n"
    )
    assert result.exit_code == errors.InvalidInput.exit_code
    assert "https://HOST:PORT" in one_line(result.stderr)


def test_no_server_is_told(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "p", Seams())
    result = terminal.run("login", "bob", "--password-stdin", text="x\n", server="")
    assert "SECADMIN_URL" in one_line(result.stderr)


def test_an_error_is_json_with_json(tmp_path: Path) -> None:
    answer = problem(422, "no \x1b[2J", line=2, column=3)
    terminal = answering(tmp_path / "p", lambda _: answer).with_session()
    result = terminal.run("--json", "catalog")
    told = json.loads(result.stderr)
    assert told["detail"] == "no \x1b[2J"
    assert (told["exit_code"], told["line"], told["column"]) == (2, 2, 3)
    assert "\x1b" not in result.stderr


def test_something_that_is_not_secadmin_is_told(tmp_path: Path) -> None:
    page = httpx.Response(502, text="<html>")
    result = answering(tmp_path / "p", lambda _: page).with_session().run("catalog")
    assert (result.exit_code, "check --server" in one_line(result.stderr)) == (1, True)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    terminal = answering(tmp_path / "p", lambda _: pytest.fail("a call")).with_session()
    result = terminal.run("query", "add", "q", str(tmp_path / "no.sql"))
    assert result.exit_code == errors.InvalidInput.exit_code
    assert "No such file" in one_line(result.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ("query", "add", "q"),
        ("policy", "load"),
        ("policy", "compare", "in1", "desk"),
        ("schema", "add", "s", "--file"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "f.sql is empty"), (b" \n", "f.sql is empty"), (b"\xff", "f.sql is not text in UTF-8")],
)
def test_a_file_without_a_text_is_named(
    tmp_path: Path, command: tuple[str, ...], content: bytes, told: str
) -> None:
    terminal = answering(tmp_path / "p", lambda _: pytest.fail("a call")).with_session()
    (tmp_path / "f.sql").write_bytes(content)
    result = terminal.run(*command, str(tmp_path / "f.sql"))
    assert result.exit_code == errors.InvalidInput.exit_code
    assert told in one_line(result.stderr)


def test_an_empty_standard_input_is_told(tmp_path: Path) -> None:
    terminal = answering(tmp_path / "p", lambda _: pytest.fail("a call")).with_session()
    result = terminal.run("query", "add", "q", "-", "--language", "sql", text="")
    assert result.exit_code == errors.InvalidInput.exit_code
    assert "standard input is empty" in one_line(result.stderr)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_is_none_in_a_url_reaches_no_other_path(tmp_path: Path, name: str) -> None:
    terminal = answering(tmp_path / "p", lambda _: pytest.fail("a call")).with_session()
    result = terminal.run("stream", "show", name)
    assert result.exit_code == errors.NotFound.exit_code
    assert one_line(result.stderr) == f"error: there is nothing with the name {name!r}\n"


def test_connection_refused_says_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"https://127.0.0.1:{port}"
    result = Terminal(tmp_path / "p", Seams()).with_session(server=url).run("catalog", server=url)
    assert result.exit_code == errors.Unavailable.exit_code
    assert one_line(result.stderr).startswith(f"error: nothing answers at {url}")


def test_a_load_balancer_without_a_secadmin_is_told_of(tmp_path: Path) -> None:
    """It ends each connection after the client's first words."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.recv(65536)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        result = (
            Terminal(tmp_path / "p", Seams()).with_session(server=url).run("catalog", server=url)
        )
        thread.join(10)
    assert result.exit_code == errors.Unavailable.exit_code
    assert "no SecAdmin works behind it yet" in one_line(result.stderr)


@pytest.mark.parametrize("status", [404, 503])
def test_an_access_that_cannot_be_written_is_told_of_whatever_becomes_of_it(
    tmp_path: Path, status: int
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE":
            return problem(status, "so it is")
        return httpx.Response(200, json={"principal": "output-1"})

    terminal = answering(tmp_path / "p", answer).with_session()
    result = terminal.run("subscribe", "alerts", "--dir", str(tmp_path / "d"))
    assert result.exit_code == errors.PlatformError.exit_code
    assert "error: the server's answer is not an access" in result.stderr
    assert not (tmp_path / "d").exists()


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[str, Path]]:
    """A server with a certificate of its own CA, which answers one login; its URL and that CA."""
    certificates = ensure_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.secadmin.certificate, certificates.secadmin.key)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            with context.wrap_socket(listening.accept()[0], server_side=True) as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                # Closing with the request half read would reset the connection under the answer.
                while connection.recv(65536):
                    pass
        except OSError:
            return

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"https://localhost:{listening.getsockname()[1]}", certificates.ca
    thread.join(10)
    listening.close()


def test_a_certificate_is_checked_against_the_ca(tmp_path: Path) -> None:
    with tls_server(tmp_path / "right") as (url, ca):
        terminal = Terminal(tmp_path / "p", Seams()).with_session(server=url)
        assert terminal.run("logout", "--ca", str(ca), server=url).exit_code == 0


@pytest.mark.parametrize("with_ca", [True, False])
def test_a_certificate_of_another_ca_is_refused(tmp_path: Path, with_ca: bool) -> None:
    other = ensure_certificates(tmp_path / "wrong").ca
    with tls_server(tmp_path / "right") as (url, _):
        terminal = Terminal(tmp_path / "p", Seams()).with_session(server=url)
        result = terminal.run("catalog", *(["--ca", str(other)] if with_ca else []), server=url)
    assert result.exit_code == 8
    assert "SECADMIN_CA" in one_line(result.stderr)


def test_a_ca_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    for name in ("ca", "absent"):
        terminal = Terminal(tmp_path / "p", Seams()).with_session()
        result = terminal.run("catalog", "--ca", str(tmp_path / name))
        assert (result.exit_code, "check --ca" in one_line(result.stderr)) == (2, True)
