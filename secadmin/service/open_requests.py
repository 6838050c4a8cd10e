"""The limit of requests that the service handles at once."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from secadmin.service.problems import problem

MOST_OPEN = 400
MOST_WITHOUT_TOKEN = 100
"""The part of them for requests without a token. The rest is for requests with a token."""


class OpenRequests:
    """ASGI middleware that answers 503 if too many requests are open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        # Requests with and without a token. Only the event loop changes them.
        self._open = {True: 0, False: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if there is room."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bearer = any(name == b"authorization" for name, _ in scope["headers"])
        full = not bearer and self._open[False] >= MOST_WITHOUT_TOKEN
        if full or sum(self._open.values()) >= MOST_OPEN:
            answer = problem(503, "Unavailable", "too many requests are open; try again")
            answer.headers["Retry-After"] = "2"
            # Otherwise the rest of the body would be read as the next request.
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        self._open[bearer] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[bearer] -= 1
