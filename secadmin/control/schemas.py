"""Schemas: adding, showing, removing."""

from __future__ import annotations

from sqlalchemy import select

from catalog.errors import Conflict
from catalog.models import Object, SchemaRow, StreamRow
from catalog.names import check_object_name
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.schema import Schema, check_definition
from catalog.stored_form import from_stored, to_stored
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, reading, working


def add_schema(platform: Platform, caller: Caller, name: str, schema: Schema) -> None:
    """Add a schema. Needs ADD SCHEMA."""
    check_object_name(name)
    check_definition(schema)
    with working(platform, caller, "add schema", f"schema {name}") as work:
        work.require_system(Permission.ADD_SCHEMA)
        work.require_free(Namespace.SCHEMA, name)
        obj = Object(
            kind=ObjectKind.SCHEMA,
            namespace=Namespace.SCHEMA,
            name=name,
            owner_id=work.subject.user_id,
            created_at=platform.clock(),
        )
        work.session.add(obj)
        work.session.flush()
        work.session.add(SchemaRow(object_id=obj.id, definition=to_stored(schema)))


def show_schema(platform: Platform, caller: Caller, name: str) -> Schema:
    """The attributes of a schema that the caller may view."""
    with reading(platform, caller, "show schema", f"schema {name}") as view:
        obj = view.find(ObjectKind.SCHEMA, name)
        return from_stored(Schema, view.session.get_one(SchemaRow, obj.id).definition)


def remove_schema(platform: Platform, caller: Caller, name: str) -> None:
    """Remove a schema that no stream uses any more. Needs CHANGE PERM on it."""
    with working(platform, caller, "remove schema", f"schema {name}") as work:
        obj = work.find(ObjectKind.SCHEMA, name)
        work.require(Permission.CHANGE_PERM, obj)
        used = (
            select(Object.id)
            .join(StreamRow, StreamRow.object_id == Object.id)
            .where(StreamRow.schema_id == obj.id, Object.removed_at.is_(None))
        )
        if work.session.scalar(used.limit(1)) is not None:
            raise Conflict(f"streams still use the schema {name!r}; remove them first")
        obj.removed_at = obj.gone_at = platform.clock()
