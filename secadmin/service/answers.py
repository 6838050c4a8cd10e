"""Parts of answers that several routes share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request

from catalog.schema import Schema
from secadmin.control.accesses import Given
from secadmin.control.platform import Platform


def utc(at: datetime) -> datetime:
    """Add the zone to a time of the catalog, which stores UTC without a zone."""
    return at.replace(tzinfo=UTC)


def attributes_of(schema: Schema) -> list[dict[str, Any]]:
    """A schema as JSON."""
    return [
        {"name": a.name, "type": str(a.type), "required": a.required} for a in schema.attributes
    ]


def handle_of(principal: str, request: Request) -> str:
    """The URI of an access, at the address by which the caller reached the service (002 §3.2)."""
    return str(request.url_for("show_access", principal=principal))


def access_answer(platform: Platform, given: Given, request: Request) -> dict[str, Any]:
    """A new access as JSON, with everything that a client needs to connect."""
    answer = {
        "handle": handle_of(given.principal, request),
        "principal": given.principal,
        "secret": given.secret,
        "kind": given.kind,
        "bootstrap": platform.bootstrap,
        "ca_pem": platform.ca_pem,
        "topic": given.topic,
        "topic_pattern": given.topic_pattern,
        "group_prefix": given.group_prefix,
    }
    return {key: value for key, value in answer.items() if value is not None}
