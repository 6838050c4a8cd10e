"""What roles see of streams, by the policies in the catalog.

A role counts for a stream if it holds READ TUPLE there. If none does, those count that hold READ
AGGREGATE. A user without any of them gets no tuple of the stream by its label, so it needs no view.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sqlalchemy import String, bindparam, cast, orm, select

from catalog.errors import Denied
from catalog.models import Grant, Object, OutputInput, OutputView, PolicyRow, Role
from catalog.permission import ObjectKind, Permission
from catalog.role_view import RoleView
from catalog.roles import juniors_of
from catalog.stored_form import from_stored
from catalog.view_merging import all_of, covers, one_of

WHOLE = RoleView()
_OF_STREAM = PolicyRow.stream_id == bindparam("stream")
_ANY_POLICY = select(PolicyRow.stream_id).where(_OF_STREAM).limit(1)
_POLICIES = (
    select(PolicyRow.role_id, cast(PolicyRow.view, String).label("view"))
    .where(_OF_STREAM, PolicyRow.role_id.in_(bindparam("roles", expanding=True)))
    .order_by(PolicyRow.id)
)
_HOLDERS = select(Grant.role_id, Grant.permission).where(
    Grant.object_id == bindparam("stream"),
    Grant.role_id.in_(bindparam("roles")),
    Grant.permission.in_([Permission.READ_TUPLE, Permission.READ_AGGREGATE]),
)
_READS = (
    select(OutputInput.relation_id, Object.kind)
    .join(Object, Object.id == OutputInput.relation_id)
    .where(OutputInput.output_id == bindparam("output"))
)
_OUTPUT_VIEWS = select(OutputView).where(OutputView.output_id == bindparam("output"))


@lru_cache(maxsize=2_000)
def merged_view(*stored: str) -> RoleView:
    """What the policies with these stored forms show together (002 §4.2: the cache of a proxy).

    It is kept by what the policies say, and the policies are read for each request. So it is never
    older than the last call that changed one.
    """
    return all_of(from_stored(RoleView, json.loads(text)) for text in stored)


@dataclass(frozen=True, slots=True)
class _Read:
    """An output, `reader`, reads a stream through a view."""

    stream: int
    view: RoleView
    reader: int


@dataclass
class RoleViews:
    """Looks up views in one transaction, each once. Roles are given with all their juniors."""

    session: orm.Session
    _restricted: dict[int, bool] = field(default_factory=dict)
    _policies: dict[int, dict[int, RoleView]] = field(default_factory=dict)
    _reads: dict[int, tuple[_Read, ...]] = field(default_factory=dict)

    def of(
        self, roles: Collection[int], stream: Object, as_roles: Collection[int] | None = None
    ) -> RoleView:
        """The view through which a query of these roles reads the stream.

        With `as_roles`, which are some of the roles, it is what these see. Raises Denied if the
        views of the roles do not add up, or if `as_roles` see nothing of the stream.
        """
        views = self._views(roles, stream.id, as_roles)
        if not views:
            if as_roles is not None and self._views(roles, stream.id, None):
                known = ", ".join(self._names(as_roles)) or "none is left"
                raise Denied(
                    f"no role for which the query is ({known}) holds {Permission.READ_TUPLE} on "
                    f"{stream.name}"
                )
            return WHOLE
        merged = one_of(list(views.values()))
        if merged is None:
            known = ", ".join(self._names(views))
            raise Denied(
                f"your roles see different attributes or windows of {stream.name}, which do not "
                f"add up; choose one of them with --as ROLE: {known}"
            )
        return merged

    def cover(
        self,
        roles: Collection[int],
        stream_id: int,
        wanted: RoleView,
        as_roles: Collection[int] | None = None,
    ) -> bool:
        """Whether one of the roles, or all that add up, see as much of the stream as `wanted`.

        Also true if none of them sees the stream: then the labels decide.
        """
        if not self._has_policies(stream_id):
            return True
        views = list(self._views(roles, stream_id, as_roles).values())
        if not views or any(covers(view, wanted) for view in views):
            return True
        merged = one_of(views)
        return merged is not None and covers(merged, wanted)

    def cover_output(
        self, roles: Collection[int], output_id: int, as_roles: Collection[int] | None = None
    ) -> bool:
        """Whether the roles see as much of each stream as the output was computed from."""
        return all(
            self.cover(roles, each.stream, each.view, as_roles) for each in self._read_by(output_id)
        )

    def windows_under(self, output_id: int) -> Mapping[int, frozenset[int]]:
        """Of each stream that the output shows only in a policy's windows, who has the windows.

        That is the output itself, or outputs that it is computed from. Streams and outputs are
        given by their ids.
        """
        found: dict[int, set[int]] = {}
        for each in self._read_by(output_id):
            if each.view.window is not None:
                found.setdefault(each.stream, set()).add(each.reader)
        return {stream: frozenset(readers) for stream, readers in found.items()}

    def shows_aggregates(self, output_id: int) -> bool:
        """Whether what the output shows of a stream is shown to it inside aggregates alone.

        It does not matter whether the output reads the stream itself.
        """
        return any(each.view.only_aggregates for each in self._read_by(output_id))

    def only_in_windows(self, roles: Collection[int], stream_id: int) -> bool:
        """Whether policies show the stream to these roles, and by none of them a single tuple."""
        views = self._views(roles, stream_id, None).values()
        return bool(views) and all(view.window is not None for view in views)

    def _names(self, roles: Iterable[int]) -> list[str]:
        names = select(Role.name).where(Role.id.in_(list(roles))).order_by(Role.name)
        return list(self.session.scalars(names))

    def _views(
        self, roles: Collection[int], stream_id: int, as_roles: Collection[int] | None
    ) -> dict[int, RoleView]:
        """The view of each role that counts for the stream."""
        asked = {"stream": stream_id, "roles": list(roles)}
        held: dict[str, set[int]] = {}
        for role, permission in self.session.execute(_HOLDERS, asked):
            held.setdefault(permission, set()).add(role)
        counting = held.get(Permission.READ_TUPLE) or held.get(Permission.READ_AGGREGATE) or set()
        if as_roles is not None:
            # What a role has of its own is what it sees; otherwise it has what its juniors have.
            juniors = juniors_of(self.session, as_roles)
            counting = {
                held
                for role in as_roles
                for held in ({role} if role in counting else juniors.get(role, set()) & counting)
            }
        policies = self._policies_of(stream_id, counting)
        return {role: policies[role] for role in sorted(counting)}

    def _has_policies(self, stream_id: int) -> bool:
        if stream_id not in self._restricted:
            found = self.session.scalar(_ANY_POLICY, {"stream": stream_id})
            self._restricted[stream_id] = found is not None
        return self._restricted[stream_id]

    def _policies_of(self, stream_id: int, roles: Collection[int]) -> Mapping[int, RoleView]:
        """What each of these roles sees of the stream: all its policies hold together.

        Only their policies are read. A stream may have thousands, for as many roles.
        """
        known = self._policies.setdefault(stream_id, {})
        if not self._has_policies(stream_id):
            return dict.fromkeys(roles, WHOLE)
        wanted = set(roles) - known.keys()
        if wanted:
            found: dict[int, list[str]] = {role: [] for role in wanted}
            asked = {"stream": stream_id, "roles": list(wanted)}
            for role, stored in self.session.execute(_POLICIES, asked):
                found[role].append(stored)
            known |= {role: merged_view(*texts) for role, texts in found.items()}
        return known

    def _read_by(self, output_id: int) -> tuple[_Read, ...]:
        """Each stream from which the output is computed, with a view through which it is read."""
        if output_id not in self._reads:
            waiting, seen = [output_id], {output_id}
            found: list[_Read] = []
            while waiting:
                reader = waiting.pop()
                current = {"output": reader}
                rows = self.session.scalars(_OUTPUT_VIEWS, current)
                views = {row.stream_id: from_stored(RoleView, row.view) for row in rows}
                for relation, kind in self.session.execute(_READS, current):
                    if kind == ObjectKind.STREAM:
                        found.append(_Read(relation, views.get(relation, WHOLE), reader))
                    elif relation not in seen:
                        seen.add(relation)
                        waiting.append(relation)
            self._reads[output_id] = tuple(found)
        return self._reads[output_id]
