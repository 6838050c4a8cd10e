"""Requests larger than any this API takes are refused before they are read."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from secadmin.service.problems import problem

MAX_BODY_BYTES = 1_048_576


class BodyLimit:
    """ASGI middleware that answers 413 to a body over `MAX_BODY_BYTES`, declared or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on once its whole body is known to be small enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY_BYTES:
                detail = f"a request is at most {MAX_BODY_BYTES} bytes long"
                await problem(413, "Request too large", detail)(scope, receive, send)
                return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)
