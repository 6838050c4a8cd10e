"""Reads the body of each request, and refuses one that is too large before all of it is read.

A caller without a session needs to send only a login. More is read only with a valid token.
`secadmin.service.door` limits how long a body may take, and how many clients may be sending one.
"""

from __future__ import annotations

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.errors import Unavailable
from secadmin.service.problems import problem, unavailable
from secadmin.service.token_checks import TokenChecks

MAX_BODY_BYTES = 1_048_576
MAX_STRANGERS_BODY_BYTES = 16_384
MOST_LARGE = 200
"""How many bodies of more than `MAX_STRANGERS_BODY_BYTES` may be in memory at once."""


class BodyLimit:
    """ASGI middleware. It answers 413 to a body over the limit, with or without a declared size."""

    def __init__(self, app: ASGIApp, checks: TokenChecks) -> None:
        self._app = app
        self._checks = checks
        # The large bodies in memory, by their identities. Only the event loop changes them.
        self._large: set[int] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, and pass the request on if the body is small enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            refusal = await self._read(body, scope, receive)
            if refusal is None:
                await self._app(scope, _replayed(body, receive), send)
            else:
                # The rest of the body is not read.
                refusal.headers["Connection"] = "close"
                await refusal(scope, receive, send)
        finally:
            self._large.discard(id(body))

    async def _read(self, body: bytearray, scope: Scope, receive: Receive) -> JSONResponse | None:
        """Read the body. Gives the answer to a request that is not carried out."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                # Nobody reads this answer. A request that is not complete is not carried out.
                return problem(400, "Bad request", "the body is not complete")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if (refusal := await self._let_grow(body, scope)) is not None:
                return refusal
            if len(body) > MAX_BODY_BYTES:
                return _too_large(MAX_BODY_BYTES)
        return None

    async def _let_grow(self, body: bytearray, scope: Scope) -> JSONResponse | None:
        """Let the body be large if its request has a valid token, and if there is room."""
        if len(body) <= MAX_STRANGERS_BODY_BYTES or id(body) in self._large:
            return None
        try:
            if not await self._checks.has_session(scope):
                return _too_large(MAX_STRANGERS_BODY_BYTES)
        except Unavailable as failure:
            return unavailable(failure.detail)
        if len(self._large) >= MOST_LARGE:
            return unavailable("too many large requests are open; try again")
        self._large.add(id(body))
        return None


def _too_large(limit: int) -> JSONResponse:
    return problem(413, "Request too large", f"this request is at most {limit} bytes long")


def _replayed(body: bytearray, receive: Receive) -> Receive:
    """What gives the whole body first, and then what `receive` gives."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return replay
