"""One access to a stream for a user whose roles' policies show it only in windows (002, 3.4).

A user that has windows of two sizes over the same tuples computes single tuples from them. So of
all accesses of the user, whatever their sessions, roles and outputs, those that reach the stream
show the same windows, or windows over other tuples: a query sees whole windows only from when it
was added (`catalog.view_windows`), so it may follow an access that had ended by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import func, orm, select

from catalog.errors import Conflict, InvalidInput
from catalog.models import Access, Object, Withdrawal
from catalog.relation import Relation, RelationKind
from catalog.role_views import RoleViews


@dataclass
class Windows:
    """Looks up, in one transaction, which accesses show windows over the same tuples."""

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
        others = select(Access).where(Access.user_id == user_id, Access.kind == "output")
        newest = None
        if own is not None:
            others = others.where(Access.id != own.id)
            newest = own.id if self._has_shown(own) else None
        return next(
            (
                each
                for each in self.session.scalars(others.order_by(Access.id))
                if (newest is None or each.id < newest)
                and self._has_shown(each)
                and self._clash(each, found)
            ),
            None,
        )

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

    def _clash(self, access: Access, wanted: dict[int, frozenset[int]]) -> bool:
        """Whether the access showed other windows over tuples that the wanted ones take in."""
        windows = self.views.windows_under(access.object_id)
        return any(
            stream in windows
            and windows[stream] != readers
            and not self._ended_before(access, readers)
            for stream, readers in wanted.items()
        )

    def _ended_before(self, access: Access, readers: Iterable[int]) -> bool:
        """Whether nothing more reached the access when these outputs were added."""
        if access.ended_at is None:
            return False
        own = Withdrawal.principal == access.principal
        undone = select(Withdrawal.id).where(own, Withdrawal.done_at.is_(None))
        if self.session.scalar(undone.limit(1)) is not None:
            return False
        done = self.session.scalar(select(func.max(Withdrawal.done_at)).where(own))
        end = access.ended_at if done is None else max(access.ended_at, done)
        return all(end <= self._when_added(output) for output in readers)

    def _when_added(self, output_id: int) -> datetime:
        if output_id not in self._added:
            self._added[output_id] = self.session.get_one(Object, output_id).created_at
        return self._added[output_id]


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
