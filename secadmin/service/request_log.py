"""One line in the service's log for each request: the operation, its result, and the user.

Paths and query strings name objects and principals. So the line has only the template of the route.
The audit log says which user did what to which object.
"""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NOBODY = "-"
# The client chooses the text of the method.
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_log = logging.getLogger(__name__)


class RequestLog:
    """ASGI middleware that writes a request's line once it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            _write(scope, status, began)


def _write(scope: Scope, status: int, began: float) -> None:
    passed_ms = round((time.monotonic() - began) * 1000)
    route = getattr(scope.get("route"), "path", _NOBODY)
    user = scope.get("state", {}).get("user", _NOBODY)
    method = scope["method"] if scope["method"] in _METHODS else _NOBODY
    _log.info("%s %s %d %d ms %s", method, route, status, passed_ms, user)
