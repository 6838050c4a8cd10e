"""Finds out whether a request has a valid token, before the service does anything else for it.

A flood of tokens that somebody made up takes none of the threads that other calls need.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import Scope

from secadmin.service.door import KNOWN
from secadmin.service.few_threads import FewThreads

THREADS = 4
MOST_WAITING = 100
"""A check reads one row. If so many requests wait for theirs, the next one must try again."""


def is_known(scope: Scope) -> bool:
    """Say whether the request's token was found to be valid already."""
    return bool(scope.get("state", {}).get(KNOWN))


class TokenChecks:
    """The checks of one service. A request's token is checked once."""

    def __init__(self, is_valid: Callable[[str], bool]) -> None:
        """`is_valid` says whether a token belongs to a session. It may raise Unavailable."""
        self._is_valid = is_valid
        self._threads = FewThreads(THREADS, MOST_WAITING, "too many tokens are being checked")

    async def has_session(self, scope: Scope) -> bool:
        """Say whether the request's token belongs to a session, and note it if so.

        Raises Unavailable if this is unknown: too many requests wait, or the database is away.
        """
        if is_known(scope):
            return True
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return False
        if not await self._threads.run(self._is_valid, token):
            return False
        scope.setdefault("state", {})[KNOWN] = True
        return True
