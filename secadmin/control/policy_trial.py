"""Tries policies on one record: who would see what of it. Nothing is sent or stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, cast

from sqlalchemy import select

from catalog.errors import InvalidInput
from catalog.models import Grant, Role
from catalog.permission import Permission
from catalog.role_view import SmallestWindow, TupleWindow
from catalog.role_views import RoleViews
from catalog.schema import ArrayType, Attribute, Schema, Type
from catalog.view_trial import Sight, Value, Values, sight_of
from secadmin.control.platform import Platform
from secadmin.control.policies import relation_of, stream_to_change
from secadmin.control.work import Caller, reading

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_KINDS: Mapping[Type, tuple[type, ...]] = {
    Type.BOOLEAN: (bool,),
    Type.BIGINT: (int,),
    Type.DOUBLE: (int, float),
    Type.STRING: (str,),
    Type.TIMESTAMP: (str,),
}


@dataclass(frozen=True, slots=True)
class RoleSight:
    """What a role would see of the record.

    `window_ms` is the size of its smallest window, or `window_tuples` if that is one of tuples.
    """

    role: str
    sight: Sight
    window_ms: int | None
    window_tuples: int | None


def try_record(
    platform: Platform, caller: Caller, stream: str, record: Mapping[str, Any]
) -> list[RoleSight]:
    """What each role with READ TUPLE on the stream would see of a record, by its own policies.

    Needs CHANGE PERM on the stream. Raises InvalidInput if the record does not fit the schema.
    """
    with reading(platform, caller, "try policies", f"stream {stream}") as view:
        obj = stream_to_change(view, stream)
        relation = relation_of(view, obj)
        values = values_of(relation.schema, record)
        readers = (
            select(Role)
            .join(Grant, Grant.role_id == Role.id)
            .where(Grant.object_id == obj.id, Grant.permission == Permission.READ_TUPLE)
            .order_by(Role.name)
        )
        views = RoleViews(view.session)
        found = []
        for role in view.session.scalars(readers):
            seen = views.of({role.id}, obj)
            window = seen.window
            length = window.size_ms if isinstance(window, SmallestWindow) else None
            tuples = window.size if isinstance(window, TupleWindow) else None
            sight = as_written(sight_of(seen, relation.schema, values), record)
            found.append(RoleSight(role.name, sight, length, tuples))
        return found


def as_written(sight: Sight, record: Mapping[str, Any]) -> Sight:
    """The sight with its values as the record has them."""
    values = {n: None if v is None else record[n] for n, v in sight.values.items()}
    return Sight(sight.seen, values, sight.aggregated)


def values_of(schema: Schema, record: Mapping[str, Any]) -> Values:
    """The values of a record as a sender would send it. Raises InvalidInput."""
    for name in record:
        if schema.get(name) is None:
            known = ", ".join(schema.names)
            raise InvalidInput(f"unknown attribute {name[:80]!r}; there are: {known}")
    return {each.name: _value(each, record.get(each.name)) for each in schema.attributes}


def _value(attribute: Attribute, given: object) -> Value:
    if given is None:
        if attribute.required:
            raise InvalidInput(f"the record lacks {attribute.name}, which is required")
        return None
    if not isinstance(attribute.type, Type):
        return _nested(attribute, given)
    kinds = _KINDS[attribute.type]
    if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
        raise InvalidInput(f"{attribute.name} is a {attribute.type}")
    if attribute.type is Type.TIMESTAMP:
        return _microseconds(attribute.name, str(given))
    if isinstance(given, float) and not isfinite(given):
        raise InvalidInput(f"{attribute.name} is not a finite number")
    if isinstance(given, int) and not -(2**63) <= given < 2**63:
        raise InvalidInput(f"{attribute.name} is out of the range of a bigint")
    return cast(Value, given)


def _nested(attribute: Attribute, given: object) -> Value:
    """A nested value as a text, by which two of them are compared."""
    wanted = list if isinstance(attribute.type, ArrayType) else dict
    if not isinstance(given, wanted):
        raise InvalidInput(f"{attribute.name} is an {attribute.type}")
    return json.dumps(given, sort_keys=True)


def _microseconds(name: str, text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return (at - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        raise InvalidInput(f"{name} is a time in ISO 8601, such as 2026-01-31T12:00:00Z") from None
