"""The server's problem documents (RFC 9457) as PlatformErrors with exit codes."""

from __future__ import annotations

from typing import Any

import httpx

from catalog.errors import (
    Conflict,
    Denied,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    PlatformError,
    Position,
    Unavailable,
)

_BY_STATUS: dict[int, type[PlatformError]] = {
    cls.status: cls
    for cls in (InvalidInput, NotAuthenticated, Denied, NotFound, Conflict, Unavailable)
}
_BY_STATUS |= {400: InvalidInput, 413: InvalidInput, 429: Unavailable}
_MOST = 2000


def error_of(response: httpx.Response) -> PlatformError:
    """The error for an answer that is not a success."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        return PlatformError(
            f"the answer (status {response.status_code}) is not SecAdmin's; check --server"
        )
    detail = str(problem.get("detail") or problem.get("title") or "no reason was given")[:_MOST]
    error = _BY_STATUS.get(response.status_code, PlatformError)(detail)
    if isinstance(error, InvalidInput):
        # Set afterwards: the constructor would write the place into a text that may name it.
        error.position = _position(problem)
    return error


def _position(problem: dict[str, Any]) -> Position | None:
    line, column = problem.get("line"), problem.get("column")
    if isinstance(line, int) and isinstance(column, int) and line > 0 and column > 0:
        return Position(line, column)
    return None
