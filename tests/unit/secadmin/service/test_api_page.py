"""docs/api.md has a row for each call of the API, and no other ones."""

import re
from pathlib import Path

from fastapi import FastAPI

from secadmin.service.routes import ROUTERS

PAGE = Path(__file__).parents[4] / "docs" / "api.md"
_ROW = re.compile(r"^\| (`(?:GET|POST|PUT|DELETE)\b[^|]*) \|", re.MULTILINE)
_NAME = re.compile(r"\{\w+\}")


def operations() -> set[str]:
    """The calls of the service, such as `GET /streams/{}`."""
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    return {
        f"{method.upper()} {_NAME.sub('{}', path)}"
        for path, calls in app.openapi()["paths"].items()
        for method in calls
    }


def documented() -> set[str]:
    """The calls that the page names. A path is that of all methods before it in its cell."""
    found = set()
    for row in _ROW.findall(PAGE.read_text()):
        methods: list[str] = []
        for part in re.findall(r"`([^`]+)`", row):
            method, _, path = part.partition(" ")
            methods.append(method)
            if path:
                found |= {f"{each} {_NAME.sub('{}', path.partition('?')[0])}" for each in methods}
                methods = []
    return found


def test_each_call_has_a_row() -> None:
    assert documented() == operations()
