"""One access to a stream for a user whose roles' policies show it only in windows (002, 3.4).

A user that has windows of two sizes over the same tuples computes single tuples from them. So of
all accesses of the user, whatever their sessions, roles and outputs, those that reach the stream
show the same windows, or windows over other tuples: a query sees whole windows only from when it
was added (`catalog.view_windows`), so it may follow an access that had ended by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, or_, orm, select

from catalog.access_kind import AccessKind
from catalog.errors import Conflict, InvalidInput
from catalog.models import Access, Object, Withdrawal
from catalog.relation import Relation, RelationKind
from catalog.role_views import RoleViews


@dataclass
class Windows:
    """Looks up, in one transaction, which accesses show windows over the same tuples.

    A user has few live accesses, but may have ended any number. These are looked up in one
    statement, by the outputs that they were to.
    """

    session: orm.Session
    views: RoleViews
    _added: dict[int, datetime] = field(default_factory=dict)

    def in_the_way(
        self, user_id: int, roles: Collection[int], output_id: int, own: Access | None = None
    ) -> Access | None:
        """Another access of the user that keeps it from the output; None if there is none.

        `own` is the access to the output, if there is one already. Only an access that reaches
        something, or did, is in the way. Of two such accesses the older one stays.
        """
        found = self._gated(roles, output_id)
        if not found:
            return None
        # What this change has taken from the others counts, too.
        self.session.flush()
        newest = own.id if own is not None and self._has_shown(own) else None
        others = {*self._live_ones(user_id, own, found), *self._ended_ones(user_id, found)}
        before = [each for each in others if newest is None or each < newest]
        return self.session.get_one(Access, min(before)) if before else None

    def _live_ones(
        self, user_id: int, own: Access | None, found: dict[int, frozenset[int]]
    ) -> Iterator[int]:
        """The other live accesses that show other windows."""
        live = select(Access).where(_to_outputs(user_id), Access.ended_at.is_(None))
        for each in self.session.scalars(live):
            clash = any(self._differ(each.object_id, *of) for of in found.items())
            if clash and each is not own and self._has_shown(each):
                yield each.id

    def _ended_ones(self, user_id: int, found: dict[int, frozenset[int]]) -> Iterator[int]:
        """For each output the oldest ended access that showed tuples which the wanted ones show."""
        for stream, readers in found.items():
            added = min(map(self._when_added, readers))
            for output_id, access_id in self._ended_after(user_id, added):
                if self._differ(output_id, stream, readers):
                    yield access_id

    def _ended_after(self, user_id: int, added: datetime) -> Sequence[tuple[int, int]]:
        """Each output that an ended access has shown after that time, and the oldest such access.

        An access has ended when its last withdrawal is done.
        """
        own = select(Withdrawal.id).where(Withdrawal.principal == Access.principal)
        late = own.where(or_(Withdrawal.done_at.is_(None), Withdrawal.done_at > added))
        ended = (
            select(Access.object_id, func.min(Access.id))
            .where(_to_outputs(user_id), Access.ended_at.is_not(None))
            .where(or_(Access.topics.any(), own.exists()))
            .where(or_(Access.ended_at > added, late.exists()))
            .group_by(Access.object_id)
        )
        return [(output_id, first) for output_id, first in self.session.execute(ended)]

    def _has_shown(self, access: Access) -> bool:
        """Whether the access reaches a topic, or did."""
        if access.topics:
            return True
        taken = select(Withdrawal.id).where(Withdrawal.principal == access.principal)
        return self.session.scalar(taken.limit(1)) is not None

    def several_in(self, roles: Collection[int], output_id: int) -> bool:
        """Whether the output alone is computed from several windows over one such stream."""
        return any(len(readers) > 1 for readers in self._gated(roles, output_id).values())

    def _gated(self, roles: Collection[int], output_id: int) -> dict[int, frozenset[int]]:
        """Who has the windows of each stream that these roles see only in windows."""
        windows = self.views.windows_under(output_id)
        return {
            stream: readers
            for stream, readers in windows.items()
            if self.views.only_in_windows(roles, stream)
        }

    def _differ(self, output_id: int, stream: int, readers: frozenset[int]) -> bool:
        """Whether the output has other windows over the stream than these readers of it."""
        windows = self.views.windows_under(output_id)
        return stream in windows and windows[stream] != readers

    def _when_added(self, output_id: int) -> datetime:
        if output_id not in self._added:
            self._added[output_id] = self.session.get_one(Object, output_id).created_at
        return self._added[output_id]


def _to_outputs(user_id: int) -> ColumnElement[bool]:
    """The accesses of the user to outputs."""
    return and_(Access.user_id == user_id, Access.kind == AccessKind.OUTPUT)


def require_one_window(
    session: orm.Session, user_id: int, roles: Collection[int], output: Object
) -> None:
    """Raise Conflict if the user may not have the output's windows beside those that it had."""
    windows = Windows(session, RoleViews(session))
    if windows.several_in(roles, output.id):
        raise Conflict(
            f"{output.name} is computed from several windows over one stream, and the policies of "
            "your roles show you one; add a query of your own"
        )
    other = windows.in_the_way(user_id, roles, output.id)
    if other is None:
        return
    name = session.get_one(Object, other.object_id).name
    end = "" if other.ended_at else f"end the access {other.principal} to {name}, and then "
    raise Conflict(
        f"the policies of your roles show you a stream of {output.name} in one window at a time, "
        f"and you have had those of {name} since {output.name} was added; {end}add a new query"
    )


def require_one_window_below(
    views: RoleViews, roles: Collection[int], read: Iterable[Relation], own: Collection[int]
) -> None:
    """Raise InvalidInput if a query would bring together several windows over one stream.

    `read` are the relations that it reads, and `own` the streams that it reads in windows itself.
    """
    found: dict[int, set[int]] = {stream: {0} for stream in own}
    for relation in read:
        if relation.kind is RelationKind.OUTPUT:
            for stream, readers in views.windows_under(relation.object_id).items():
                if views.only_in_windows(roles, stream):
                    found.setdefault(stream, set()).update(readers)
    if any(len(readers) > 1 for readers in found.values()):
        raise InvalidInput(
            "the query reads one stream through several windows, and the policies of your roles "
            "show it in one window at a time; read it through one query"
        )
