"""What subjects may see of streams and outputs, by what the catalog says now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy import orm

from catalog.access_kind import AccessKind
from catalog.authorizer import Authorizer
from catalog.clearance import Clearance
from catalog.floors import withheld_from
from catalog.label import PUBLIC, Label
from catalog.models import Object, StreamRow
from catalog.permission import ObjectKind, Permission
from catalog.reaches import Reaches
from catalog.relation import Relation
from catalog.role_views import WHOLE, RoleViews
from catalog.stored_form import from_stored
from catalog.subject import Subject


@dataclass
class Sight:
    """Says what subjects may see. What they have in common is looked up once.

    `withheld` is what floors withhold from users. Note them first (`look_up_floors`).
    """

    session: orm.Session
    withheld: Mapping[int, Label] = field(default_factory=dict)
    _allowed: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _clearances: dict[tuple[object, ...], Clearance] = field(default_factory=dict)
    _seen: dict[tuple[frozenset[int], int], bool] = field(default_factory=dict)
    # The reach of each stream, and the categories that decide what is visible of it.
    _carried: dict[int, tuple[Label, Label]] = field(default_factory=dict)

    @cached_property
    def reaches(self) -> Reaches:
        """The reaches of streams and outputs."""
        return Reaches(self.session)

    @cached_property
    def role_views(self) -> RoleViews:
        """What policies show to roles."""
        return RoleViews(self.session)

    @cached_property
    def _authorizer(self) -> Authorizer:
        return Authorizer(self.session)

    def look_up_floors(self, users: Collection[int]) -> None:
        """Note what is withheld from these users. One that is not noted has no floor."""
        self.withheld = withheld_from(self.session, users)

    def is_allowed(self, subject: Subject, permission: Permission, obj: Object) -> bool:
        """The authorizer's decision, which depends on `_rights` and ownership alone."""
        key = (_rights(subject), subject.user_id == obj.owner_id, permission, obj.id)
        if key not in self._allowed:
            self._allowed[key] = self._authorizer.decide(subject, permission, obj).allowed
        return self._allowed[key]

    def clearance(self, subject: Subject, reach: Label) -> Clearance:
        """What the subject may see of a reach, without what waits for its floor (001 §3)."""
        key = (_rights(subject), reach)
        if key not in self._clearances:
            self._clearances[key] = self._authorizer.clearance_of(subject, reach)
        withheld = self.withheld.get(subject.user_id, PUBLIC)
        return Clearance(self._clearances[key].bits & ~withheld.bits)

    def sees_all_of(self, subject: Subject, obj: Object) -> bool:
        """Whether policies show the subject all of a stream, or all that an output may hold."""
        key = subject.role_ids, obj.id
        if key not in self._seen:
            views = self.role_views
            if obj.kind == ObjectKind.STREAM:
                self._seen[key] = views.cover(subject.role_ids, obj.id, WHOLE)
            else:
                self._seen[key] = views.cover_output(subject.role_ids, obj.id)
        return self._seen[key]

    def may_read_quarantine(self, subject: Subject, stream: Object) -> bool:
        """Whether the subject may see every tuple that the stream had so far.

        Nobody can say who may see a record whose role expression is not understood. So the
        quarantine of a stream with a label rule is also only for those that may change the stream's
        permissions.
        """
        row = self.session.get_one(StreamRow, stream.id)
        if stream.id not in self._carried:
            reach = self.reaches.of(from_stored(Relation, row.relation))
            self._carried[stream.id] = reach, self.reaches.clauses.deciding(reach)
        reach, deciding = self._carried[stream.id]
        needed = [Permission.VIEW_OBJECT, AccessKind.QUARANTINE.needed[1]]
        if row.label_rule is not None:
            needed.append(Permission.CHANGE_PERM)
        if not all(self.is_allowed(subject, right, stream) for right in needed):
            return False
        covered = self.reaches.clauses.cleared(self.clearance(subject, deciding)).covers(reach)
        # A refused record has all attributes, so only who sees all of the stream may read it.
        return covered and self.sees_all_of(subject, stream)


def _rights(subject: Subject) -> tuple[object, ...]:
    """All that a clearance depends on.

    Users with equal roles may differ in what they send to, and in their levels.
    """
    return subject.role_ids, frozenset(subject.sends_to), subject.level
