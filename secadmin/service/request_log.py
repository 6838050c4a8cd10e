"""One line in the service's log for each request: which operation, how it ended, who asked.

Paths and query strings name objects and principals, so the route's template stands for them: who
did what to what is the audit log's to tell.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from fastapi import Request, Response

_NOBODY = "-"
# A method is the client's own text.
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_log = logging.getLogger(__name__)


async def log_request(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Answer the request and write its line."""
    began = time.monotonic()
    status = 500
    try:
        response = await call_next(request)
        status = response.status_code
        return response
    finally:
        passed_ms = round((time.monotonic() - began) * 1000)
        route = getattr(request.scope.get("route"), "path", _NOBODY)
        user = getattr(request.state, "user", _NOBODY)
        method = request.method if request.method in _METHODS else _NOBODY
        _log.info("%s %s %d %d ms %s", method, route, status, passed_ms, user)
