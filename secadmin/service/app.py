"""The FastAPI application: routes, errors, and headers of every answer."""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from secadmin.control.health import Health
from secadmin.control.platform import Platform
from secadmin.service.answer_headers import AnswerHeaders
from secadmin.service.authentication import Authenticated, is_valid_token
from secadmin.service.body_limit import BodyLimit
from secadmin.service.description import RESPONSES, describe
from secadmin.service.hashing import hashing_threads
from secadmin.service.open_requests import OpenRequests
from secadmin.service.problems import add_problem_handlers
from secadmin.service.request_log import RequestLog
from secadmin.service.routes import ROUTERS
from secadmin.service.token_checks import TokenChecks


def create_app(platform: Platform) -> FastAPI:
    """The service over a platform. Only users that are logged in get its OpenAPI document."""
    app = FastAPI(
        title="SecAdmin", docs_url=None, redoc_url=None, openapi_url=None, responses=RESPONSES
    )
    app.state.platform = platform
    app.state.hashing = hashing_threads()
    app.state.health = Health(platform)
    add_problem_handlers(app)
    checks = TokenChecks(partial(is_valid_token, platform))
    # The last one that is added is called first. A request whose body is not complete is not open.
    app.add_middleware(OpenRequests, checks=checks)
    app.add_middleware(BodyLimit, checks=checks)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(RequestLog)
    for router in ROUTERS:
        app.include_router(router)

    @app.get("/openapi.json", include_in_schema=False)
    def openapi(caller: Authenticated) -> JSONResponse:
        return JSONResponse(describe(app))

    return app
