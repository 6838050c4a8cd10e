"""Connections before and between requests: limits of their time and of their number.

uvicorn has no such limits: it waits for ever for the rest of a head or a body, and accepts any
number of connections. TLS begins here and not in uvicorn, so that a connection counts from its
first moment, before it has sent anything.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from secadmin.service.waiting_room import WaitingRoom

KNOWN = "known"
"""In a request's state: whether its token was valid."""


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """The time that a client may take, in seconds, and how many clients may wait at once."""

    handshake_s: float = 5.0
    head_s: float = 10.0
    body_s: float = 20.0
    strangers: int = 512
    known: int = 512


@dataclass
class Door:
    """The state that all connections of a service share."""

    context: ssl.SSLContext
    limits: DoorLimits = DoorLimits()
    room: WaitingRoom = field(init=False)
    # Without a reference, Python may delete a task before it has ended.
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.room = WaitingRoom(self.limits.strangers, self.limits.known)

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> asyncio.Protocol:
        """uvicorn calls this for each connection that it accepts."""
        return Entrance(self, GuardedHttp(self, config, server_state, app_state))


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """The server's side of TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


class Entrance(asyncio.Protocol):
    """A connection until the TLS handshake is complete. Then HTTP takes it over."""

    def __init__(self, door: Door, http: GuardedHttp) -> None:
        self._door = door
        self._http = http

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it wait, and begin TLS."""
        raw = cast(asyncio.Transport, transport)
        # TLS must read the bytes that come now.
        raw.pause_reading()
        self._http.entered(raw)
        task = asyncio.get_running_loop().create_task(self._secure(raw))
        self._door.tasks.add(task)
        task.add_done_callback(self._door.tasks.discard)

    async def _secure(self, raw: asyncio.Transport) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                raw,
                self._http,
                self._door.context,
                server_side=True,
                ssl_handshake_timeout=self._door.limits.handshake_s,
            )
        except OSError:
            # The handshake failed or took too long. TLS errors are subclasses of these.
            secured = None
        if secured is None or raw.is_closing():
            self._http.gone()
            raw.abort()
        else:
            self._http.connection_made(secured)


class GuardedHttp(H11Protocol):
    """HTTP on one connection. Each request must be complete within its time limit."""

    def __init__(
        self, door: Door, config: Config, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.host = ""
        self._door = door
        self._raw: asyncio.Transport | None = None
        self._early: bytes | None = b""
        self._deadline: asyncio.TimerHandle | None = None
        self._waits_for: object = None
        self._known = False

    def entered(self, raw: asyncio.Transport) -> None:
        """The connection was accepted. The time limit for the first head begins."""
        self._raw = raw
        peer = raw.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        self._wait(self, self._door.limits.head_s)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The TLS handshake is complete."""
        super().connection_made(transport)
        early, self._early = self._early, None
        if early:
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Take the data, and check whether the head or the body is complete now."""
        if self._early is not None:
            # TLS may pass on data before it reports that the handshake is complete.
            self._early += data
            return
        super().data_received(data)
        self._see()

    def on_response_complete(self) -> None:
        """The response is complete, so the connection waits for the next head."""
        self._known = self._known or bool(self.scope["state"].get(KNOWN))
        self._wait(None, self._door.limits.head_s)
        super().on_response_complete()
        self._see()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self.gone()
        if self._early is None:
            super().connection_lost(exc)

    def gone(self) -> None:
        """The connection does not wait any more."""
        self._door.room.leave(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def put_out(self) -> None:
        """End the connection at once."""
        self.gone()
        if self._raw is not None:
            self._raw.abort()

    def _see(self) -> None:
        """Find out whether the connection waits for a head, waits for a body, or is served."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._raw is None or self._raw.is_closing() or cycle is None or cycle.response_complete:
            return
        if not cycle.more_body:
            self.gone()
        elif self._waits_for is not cycle:
            self._wait(cycle, self._door.limits.body_s)

    def _wait(self, what: object, seconds: float) -> None:
        self.gone()
        self._waits_for = what
        self._deadline = self.loop.call_later(seconds, self.put_out)
        self._door.room.enter(self, known=self._known)
