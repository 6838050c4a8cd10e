"""Every answer says that no cache may keep it, a refusal too."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from catalog.errors import Denied
from secadmin.service.answer_headers import AnswerHeaders
from secadmin.service.problems import add_problem_handlers


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    add_problem_handlers(app)
    app.add_middleware(AnswerHeaders)

    @app.get("/things/{name}")
    def show(name: str) -> str:
        if name == "hidden":
            raise Denied("no")
        return name

    return TestClient(app)


@pytest.mark.parametrize(
    ("path", "status"), [("/things/a", 200), ("/things/hidden", 403), ("/nowhere", 404)]
)
def test_no_cache_keeps_an_answer(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
