"""The limit of requests that the service handles at once."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from catalog.errors import Unavailable
from secadmin.service.problems import unavailable
from secadmin.service.token_checks import TokenChecks, is_known

MOST_OPEN = 400
MOST_STRANGERS = 100
"""The part of them for requests whose token is not found to be valid yet, or that have none.

The rest is for requests with a valid token.
"""


class OpenRequests:
    """ASGI middleware that answers 503 if too many requests are open.

    The requests that it gets have their whole body. So nobody keeps a place by sending slowly. A
    request is a stranger until its token was found to be valid. Its token is checked here only if
    there is no more room for strangers; otherwise the call itself checks it.
    """

    def __init__(self, app: ASGIApp, checks: TokenChecks) -> None:
        self._app = app
        self._checks = checks
        # The open requests, by their scopes' identities. Only the event loop changes them.
        self._open: dict[int, Scope] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if there is room."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            room = self._strangers_have_room() or await self._checks.has_session(scope)
            if not room or len(self._open) >= MOST_OPEN:
                raise Unavailable("too many requests are open; try again")
        except Unavailable as failure:
            await unavailable(failure.detail)(scope, receive, send)
            return
        self._open[id(scope)] = scope
        try:
            await self._app(scope, receive, send)
        finally:
            del self._open[id(scope)]

    def _strangers_have_room(self) -> bool:
        return sum(not is_known(scope) for scope in self._open.values()) < MOST_STRANGERS
