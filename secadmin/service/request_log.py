"""One line in the service's log for each request: the operation, its result, and the user.

Paths and query strings name objects and principals. So the line has only the template of the route.
The audit log says which user did what to which object.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from fastapi import Request, Response

_NOBODY = "-"
# The client chooses the text of the method.
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
