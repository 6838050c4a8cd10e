"""The FastAPI application: routes, errors, and headers of every answer."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from secadmin.control.health import Health
from secadmin.control.platform import Platform
from secadmin.service.answer_headers import AnswerHeaders
from secadmin.service.authentication import Authenticated
from secadmin.service.body_limit import BodyLimit
from secadmin.service.description import RESPONSES, describe
from secadmin.service.hashing import HashingThreads
from secadmin.service.open_requests import OpenRequests
from secadmin.service.problems import add_problem_handlers
from secadmin.service.request_log import RequestLog
from secadmin.service.routes import ROUTERS


def create_app(platform: Platform) -> FastAPI:
    """The service over a platform. Only users that are logged in get its OpenAPI document."""
    app = FastAPI(
        title="SecAdmin", docs_url=None, redoc_url=None, openapi_url=None, responses=RESPONSES
    )
    app.state.platform = platform
    app.state.hashing = HashingThreads()
    app.state.health = Health(platform)
    add_problem_handlers(app)
    app.add_middleware(BodyLimit)
    app.add_middleware(OpenRequests)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(RequestLog)
    for router in ROUTERS:
        app.include_router(router)

    @app.get("/openapi.json", include_in_schema=False)
    def openapi(caller: Authenticated) -> JSONResponse:
        return JSONResponse(describe(app))

    return app
