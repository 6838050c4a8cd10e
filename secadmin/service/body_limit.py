"""Refuses requests that are too large before they are read.

A caller without a session needs to send only a login. More is read only with a valid token.
"""

from __future__ import annotations

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.errors import PlatformError
from secadmin.service.authentication import is_valid_token
from secadmin.service.problems import problem

MAX_BODY_BYTES = 1_048_576
MAX_STRANGERS_BODY_BYTES = 16_384


class BodyLimit:
    """ASGI middleware. It answers 413 to a body over the limit, with or without a declared size."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, and pass the request on if the body is small enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, limit = bytearray(), MAX_STRANGERS_BODY_BYTES
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                # Nobody reads this answer. A request that is not complete is not carried out.
                await problem(400, "Bad request", "the body is not complete")(scope, receive, send)
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > limit == MAX_STRANGERS_BODY_BYTES and await _has_session(scope):
                limit = MAX_BODY_BYTES
            if len(body) > limit:
                detail = f"this request is at most {limit} bytes long"
                answer = problem(413, "Request too large", detail)
                # The rest of the body is not read.
                answer.headers["Connection"] = "close"
                await answer(scope, receive, send)
                return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self._app(scope, replay, send)


async def _has_session(scope: Scope) -> bool:
    """Say whether the request's token belongs to a session. False if this is unknown."""
    kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        return False
    try:
        return await to_thread.run_sync(is_valid_token, scope["app"].state.platform, token)
    except PlatformError:
        return False
