"""Errors as problem documents (RFC 9457). The client gets no details of an unexpected error."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from catalog.error_places import places_of
from catalog.errors import InvalidInput, NotAuthenticated, PlatformError, Unavailable
from secadmin.service.description import MEDIA_TYPE

log = logging.getLogger(__name__)


def problem(status: int, title: str, detail: str, **extra: Any) -> JSONResponse:
    """A problem document as a response."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **extra}
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE)


def unavailable(detail: str) -> JSONResponse:
    """The answer to a call that is to come again in some seconds."""
    answer = problem(Unavailable.status, Unavailable.title, detail)
    answer.headers["Retry-After"] = "2"
    return answer


def add_problem_handlers(app: FastAPI) -> None:
    """Answer every error of the app with a problem document."""
    app.exception_handler(PlatformError)(_platform)
    app.exception_handler(RequestValidationError)(_validation)
    app.exception_handler(HTTPException)(_http)
    app.exception_handler(Exception)(_unexpected)


async def _platform(request: Request, error: PlatformError) -> JSONResponse:
    if isinstance(error, Unavailable):
        return unavailable(error.detail)
    extra: dict[str, Any] = {}
    if isinstance(error, InvalidInput) and error.position is not None:
        extra = {"line": error.position.line, "column": error.position.column}
    response = problem(error.status, error.title, error.detail, **extra)
    if isinstance(error, NotAuthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def _validation(request: Request, error: RequestValidationError) -> JSONResponse:
    # Only the place and the fault, never the given value, which may be a password.
    mistakes = [
        {"where": ".".join(str(part) for part in e["loc"]), "what": e["msg"]}
        for e in error.errors()
    ]
    detail = "; ".join(f"{m['where']}: {m['what']}" for m in mistakes[:5])
    return problem(422, "Invalid input", detail or "the request is not usable", errors=mistakes)


async def _http(request: Request, error: HTTPException) -> JSONResponse:
    response = problem(error.status_code, "Request failed", str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    route = getattr(request.scope.get("route"), "path", "-")
    log.error("%s %s failed: %s", request.method, route, places_of(error))
    return problem(
        500, "Internal error", "something went wrong in the service; its log has the details"
    )
