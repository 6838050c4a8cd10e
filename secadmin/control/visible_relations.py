"""The relations that a caller may name in a query, as the policies of its roles show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from catalog.errors import Conflict, Denied, InvalidInput
from catalog.label import Label
from catalog.models import Object, OutputRow, QueryRow, StreamRow
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.record_format import RecordFormat, TimeFormat
from catalog.relation import Relation, RelationKind
from catalog.role_views import RoleViews
from catalog.stored_form import from_stored
from catalog.upserts import upsert_keys
from catalog.view_plan import ViewedStream
from secadmin.control.work import Reading


@dataclass
class VisibleRelations:
    """Resolves names in a query text for the caller, and notes the relations that were named.

    Needs VIEW OBJECT on a stream and its schema, SUBSCRIBE on an output (recursive, 004 §3.1). A
    stream that policies restrict has only the attributes that they show. `viewed` has these
    streams, by their ids. With `as_roles`, the streams are as these roles see them. The query runs
    at the `level`, if it is not None.
    """

    view: Reading
    as_roles: frozenset[int] | None = None
    level: Label | None = None
    named: dict[str, Relation] = field(default_factory=dict)
    viewed: dict[int, ViewedStream] = field(default_factory=dict)

    @cached_property
    def views(self) -> RoleViews:
        """What the roles of users see of streams."""
        return RoleViews(self.view.session)

    @property
    def in_windows(self) -> frozenset[int]:
        """The ids of the streams that policies show only in windows."""
        return frozenset(i for i, each in self.viewed.items() if each.view.window is not None)

    def relation(self, name: str) -> Relation:
        """The relation of that name. Raises NotFound, Denied, InvalidInput, Conflict."""
        if name not in self.named:
            self.named[name] = self._find(name)
        return self.named[name]

    def time_format(self, name: str) -> TimeFormat:
        """How the records of a stream write times. Outputs deliver text. Raises as `relation`."""
        relation = self.relation(name)
        if relation.kind is not RelationKind.STREAM:
            return TimeFormat.ISO
        stream = self.view.session.get_one(StreamRow, relation.object_id)
        return from_stored(RecordFormat, stream.record_format).times

    def _find(self, name: str) -> Relation:
        obj = self.view.authorizer.find(self.view.subject, Namespace.RELATION, name)
        self.view.require(Permission.VIEW_OBJECT, obj)
        if obj.kind == ObjectKind.STREAM:
            stream = self.view.session.get_one(StreamRow, obj.id)
            schema = self.view.session.get_one(Object, stream.schema_id)
            self.view.require_sight(schema, f"you may not view the schema of {name}")
            return self._as_seen(obj, from_stored(Relation, stream.relation))
        self.view.require(Permission.SUBSCRIBE, obj)
        output = self.view.session.get_one(OutputRow, obj.id)
        if self.view.session.get_one(QueryRow, output.query_id).views_changed_at is not None:
            raise Conflict(
                f"policies have changed what {name} shows, and its query has not begun anew with "
                "that yet; try again in a moment"
            )
        roles = self.view.subject.role_ids
        if not self.views.cover_output(roles, obj.id, self.as_roles):
            raise Denied(shows_more(name))
        placement = Placement(output.placement)
        if not placement.has_common_results(from_stored(Plan, output.plan)):
            raise InvalidInput(
                f"the output {name} has semantics {placement.semantics}: each of its subscribers "
                "has results of its own, so no query reads it; add one query that does both steps"
            )
        relation = from_stored(Relation, output.relation)
        if relation.keys != upsert_keys(from_stored(Plan, output.plan)):
            raise InvalidInput(
                f"an older version of the platform added the output {name}, so no query reads its "
                "upserts; add its query again"
            )
        return relation

    def _as_seen(self, obj: Object, stream: Relation) -> Relation:
        seen = self.views.of(self.view.subject.role_ids, obj, self.as_roles)
        if not seen.restricts:
            return stream
        if seen.attributes is not None and not seen.attributes:
            raise Denied(f"the policies of your roles show no attribute of {stream.name}")
        self.viewed[obj.id] = ViewedStream(stream, seen)
        return self.viewed[obj.id].relation


def shows_more(output: str) -> str:
    """The reason why a user may not read an output that was computed with wider rights."""
    return (
        f"the output {output} may show more of its streams than the policies of your roles; "
        "add a query of your own over the streams"
    )
