"""Schemas."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from catalog.schema import Attribute, Schema, parse_type
from secadmin.control import schemas
from secadmin.service.answers import attributes_of
from secadmin.service.authentication import Authenticated, OnPlatform
from secadmin.service.requests import SchemaBody

router = APIRouter(prefix="/schemas", tags=["schemas"])


@router.post("", status_code=201)
def add_schema(platform: OnPlatform, caller: Authenticated, body: SchemaBody) -> dict[str, Any]:
    """Add a schema."""
    schema = Schema(
        tuple(Attribute(a.name, parse_type(a.type), a.required) for a in body.attributes)
    )
    schemas.add_schema(platform, caller, body.name, schema)
    return {"name": body.name, "attributes": attributes_of(schema)}


@router.get("/{name}")
def show_schema(platform: OnPlatform, caller: Authenticated, name: str) -> dict[str, Any]:
    """A schema's attributes."""
    schema = schemas.show_schema(platform, caller, name)
    return {"name": name, "attributes": attributes_of(schema)}


@router.delete("/{name}", status_code=204)
def remove_schema(platform: OnPlatform, caller: Authenticated, name: str) -> None:
    """Remove a schema that no stream uses."""
    schemas.remove_schema(platform, caller, name)
