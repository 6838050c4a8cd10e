"""The OpenAPI document: every answer that is none of success is a problem document (RFC 9457)."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

MEDIA_TYPE = "application/problem+json"
_NAME = "Problem"
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{_NAME}"}}}
_MEANINGS = {
    400: "The body cannot be read",
    401: "No session, or a login that failed",
    403: "The right is missing",
    404: "Not there, or not to be seen",
    409: "It does not fit the present state",
    413: "The request is too large",
    422: "What was given cannot be used",
    503: "Kafka or the database is away; what was decided stands",
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
    "description": "An RFC 9457 problem document; line and column point into a query text.",
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
    """The app's OpenAPI document, for an app that was made with RESPONSES."""
    document = app.openapi()
    document["components"]["schemas"][_NAME] = _SCHEMA
    return document
