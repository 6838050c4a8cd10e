"""Compares two versions of a policy: who would see what more, and what less (002 §2.2).

All other policies on the stream stay as they are. Nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from catalog.aggregates import POLICY_FUNCTIONS
from catalog.errors import InvalidInput
from catalog.models import Grant, Object, PolicyRow, Role
from catalog.permission import Permission
from catalog.relation import Relation
from catalog.role_view import AttributeRight, RoleView
from catalog.schema import Schema
from catalog.stored_form import from_stored
from catalog.view_merging import all_of
from catalog.view_trial import Sight, sight_of
from secadmin.control.platform import Platform
from secadmin.control.policies import (
    PolicyDefinition,
    relation_of,
    require_policy,
    stream_to_change,
)
from secadmin.control.policy_text import right_text, rows_text, window_text
from secadmin.control.policy_trial import as_written, values_of
from secadmin.control.work import Caller, Reading, reading
from secadmin.solving.view_comparison import Change, compared, compared_windows

# A stored policy by its name, one that is given, or none.
Version = str | PolicyDefinition | None
_TIME, _NULL = "as the time of windows", "null"
_EVERY_WAY = frozenset({*POLICY_FUNCTIONS, _TIME, _NULL})


@dataclass(frozen=True, slots=True)
class Difference:
    """What a role sees of a part of the stream under both versions. None: nothing.

    The part is `rows`, `windows` or `groups`, or an attribute, which is named.
    """

    role: str
    part: str
    attribute: str | None
    old: str | None
    new: str | None
    change: Change


@dataclass(frozen=True, slots=True)
class _Text:
    """A version of a policy that was found."""

    name: str
    role: Role
    view: RoleView


def compare_policies(
    platform: Platform,
    caller: Caller,
    stream: str,
    versions: tuple[Version, Version],
    record: Mapping[str, Any] | None = None,
) -> list[Difference]:
    """What the roles of two versions, old and new, would see, by role and part of the stream.

    With a record, it is what they would see of it. Stored policies that a version names count only
    as that version. Only roles with READ TUPLE see anything. Needs CHANGE PERM on the stream.
    Raises InvalidInput for a version or a record that does not fit the stream.
    """
    with reading(platform, caller, "compare policies", f"stream {stream}") as view:
        obj = stream_to_change(view, stream)
        relation = relation_of(view, obj)
        old, new = (_found(view, obj, relation, each) for each in versions)
        named = {each.name for each in (old, new) if each is not None}
        if not named:
            raise InvalidInput("there are no versions to compare; name at least one")
        found: list[Difference] = []
        for role in _readers(view, obj, {e.role.id for e in (old, new) if e is not None}):
            others = _others(view, obj, role, named)
            before, after = (_seen(others, role, each) for each in (old, new))
            found += (
                _of_views(role.name, before, after, relation.schema)
                if record is None
                else _of_record(role.name, before, after, relation.schema, record)
            )
        return found


def _found(view: Reading, stream: Object, relation: Relation, version: Version) -> _Text | None:
    if version is None:
        return None
    if isinstance(version, str):
        row = require_policy(view, stream, version)
        role = view.session.get_one(Role, row.role_id)
        return _Text(row.name, role, from_stored(RoleView, row.view))
    if version.stream != stream.name:
        raise InvalidInput(
            f"the policy {version.name!r} is about the stream {version.stream!r}; compare it there"
        )
    return _Text(version.name, view.role(version.role), version.read(relation))


def _readers(view: Reading, stream: Object, roles: set[int]) -> list[Role]:
    """Those of the roles that hold READ TUPLE on the stream."""
    held = select(Grant.role_id).where(
        Grant.object_id == stream.id, Grant.permission == Permission.READ_TUPLE
    )
    wanted = select(Role).where(Role.id.in_(roles), Role.id.in_(held)).order_by(Role.name)
    return [*view.session.scalars(wanted)]


def _others(view: Reading, stream: Object, role: Role, named: set[str]) -> list[RoleView]:
    """What the role's other policies on the stream show."""
    own = select(PolicyRow).where(
        PolicyRow.stream_id == stream.id,
        PolicyRow.role_id == role.id,
        PolicyRow.name.not_in(named),
    )
    return [from_stored(RoleView, row.view) for row in view.session.scalars(own)]


def _seen(others: list[RoleView], role: Role, version: _Text | None) -> RoleView:
    own = [version.view] if version is not None and version.role.id == role.id else []
    return all_of([*others, *own])


def _of_views(role: str, old: RoleView, new: RoleView, schema: Schema) -> Iterator[Difference]:
    found = compared(old, new, schema)
    yield Difference(role, "rows", None, rows_text(old), rows_text(new), found.rows)
    for each in found.attributes:
        yield Difference(
            *(role, "attribute", each.attribute, _right(each.old), _right(each.new), each.change)
        )
    yield Difference(role, "windows", None, window_text(old), window_text(new), found.windows)
    yield Difference(role, "groups", None, _minimum(old), _minimum(new), found.groups)


def _minimum(view: RoleView) -> str | None:
    return f"of {view.minimum} independent senders or more" if view.only_aggregates else None


def _right(right: AttributeRight | None) -> str | None:
    return None if right is None else right_text(right)


def _of_record(
    role: str, old: RoleView, new: RoleView, schema: Schema, record: Mapping[str, Any]
) -> Iterator[Difference]:
    """What the role sees of a record under both views, attribute by attribute."""
    values = values_of(schema, record)
    before, after = (as_written(sight_of(view, schema, values), record) for view in (old, new))
    windows = compared_windows(old, new)
    yield Difference(
        *(role, "rows", None, _seen_text(before), _seen_text(after)),
        Change.of(more=after.seen > before.seen, less=before.seen > after.seen),
    )
    for name in schema.names:
        first, second = _ways(before, name), _ways(after, name)
        change = Change.of(more=not second <= first, less=not first <= second)
        yield Difference(role, "attribute", name, _shown(before, name), _shown(after, name), change)
    yield Difference(role, "windows", None, window_text(old), window_text(new), windows)


def _seen_text(sight: Sight) -> str | None:
    return "the record" if sight.seen else None


def _ways(sight: Sight, name: str) -> frozenset[str]:
    """In which ways a record's attribute is of use to a role. A value is of use in every way."""
    if name in sight.aggregated:
        return frozenset({_TIME, *sight.aggregated[name]})
    if name not in sight.values:
        return frozenset()
    return frozenset({_NULL}) if sight.values[name] is None else _EVERY_WAY


def _shown(sight: Sight, name: str) -> str | None:
    if name in sight.aggregated:
        functions = sight.aggregated[name]
        return ", ".join(f"{each}({name})" for each in functions) or _TIME
    return json.dumps(sight.values[name]) if name in sight.values else None
