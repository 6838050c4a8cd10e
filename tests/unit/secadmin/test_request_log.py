"""The service's log says of each request which operation it was, and nothing that it named."""

from __future__ import annotations

import logging

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from secadmin.service.request_log import RequestLog


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.add_middleware(RequestLog)

    @app.get("/things/{name}")
    def show(request: Request, name: str) -> str:
        request.state.user = "ann"
        if name == "bad":
            raise ValueError(name)
        return name

    return TestClient(app, raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("method", "path", "line"),
    [
        ("GET", "/things/secret?q=hidden", "GET /things/{name} 200 # ms ann"),
        ("GET", "/things/bad", "GET /things/{name} 500 # ms ann"),
        ("GET", "/secret", "GET - 404 # ms -"),
        ("SECRET", "/things/secret", "- /things/{name} 405 # ms -"),
    ],
)
def test_a_request_is_one_line_without_names(
    client: TestClient, caplog: pytest.LogCaptureFixture, method: str, path: str, line: str
) -> None:
    with caplog.at_level(logging.INFO, "secadmin.service.request_log"):
        client.request(method, path)
    (record,) = [r for r in caplog.records if r.name == "secadmin.service.request_log"]
    words = record.getMessage().split(" ")
    words[3] = "#"
    assert " ".join(words) == line
