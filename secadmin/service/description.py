"""The OpenAPI document. Every answer that is not a success is a problem document (RFC 9457)."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

MEDIA_TYPE = "application/problem+json"
_NAME = "Problem"
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{_NAME}"}}}
_MEANINGS = {
    400: "The body cannot be read",
    401: "No session, or a login that failed",
    403: "The caller does not have the right",
    404: "It does not exist, or the caller may not see it",
    409: "It does not fit the present state of the platform",
    413: "The request is too large",
    422: "An input is not usable",
    503: "Kafka or the database cannot be reached; a change that was committed stays",
}
# Any route can answer with any of these.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": meaning, "content": _CONTENT} for status, meaning in _MEANINGS.items()
}
_TEXT, _PLACE = {"type": "string"}, {"type": "integer", "minimum": 1}
_MISTAKE = {
    "type": "object",
    "properties": {"where": _TEXT, "what": _TEXT},
    "required": ["where", "what"],
    "additionalProperties": False,
}
_SCHEMA = {
    "title": _NAME,
    "description": "A problem document (RFC 9457). Line and column are a position in a query text.",
    "type": "object",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": _TEXT,
        "line": _PLACE,
        "column": _PLACE,
        "errors": {"type": "array", "items": _MISTAKE},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": False,
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an app that was made with RESPONSES."""
    document = app.openapi()
    document["components"]["schemas"][_NAME] = _SCHEMA
    return document
