"""Settlement: after a change, every access gets the topics that its rights allow now.

It runs inside the change's transaction, so that the decision, its consequences and the audit entry
are one. Kafka hears of it afterwards (`secadmin.control.alignment`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial, reduce
from operator import or_ as or_bits

from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, orm, select
from sqlalchemy.orm import joinedload, selectinload

from catalog.access_kind import AccessKind
from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.delivery_classes import is_divisible
from catalog.errors import Denied
from catalog.label import Label
from catalog.models import (
    Access,
    AccessRole,
    AccessTopic,
    DeliveryClass,
    Membership,
    Object,
    OutputRow,
    QueryAsRole,
    QueryRow,
    SenderRow,
    StreamRow,
    User,
    Withdrawal,
)
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.query_roles import counting_roles
from catalog.relation import Relation
from catalog.roles import juniors_of, seniors_of
from catalog.sender_state import SenderState
from catalog.store import Change
from catalog.stored_form import from_stored
from catalog.subject import Subject, subjects_of_accesses
from catalog.topics import quarantine_topic
from secadmin.control.access_topics import AccessTopics
from secadmin.control.one_window import Windows
from secadmin.control.sight import Sight
from secadmin.control.slices import slices
from secadmin.kafka.principals import is_new_principal_name

# What a statement has in common each time is built once: that takes longer than running it.
_LIVE = (
    select(Access)
    .where(Access.ended_at.is_(None))
    .order_by(Access.id)
    .options(
        selectinload(Access.roles),
        joinedload(Access.user),
        selectinload(Access.topics).joinedload(AccessTopic.delivery_class),
    )
)
_UNDONE = (
    select(Withdrawal.topic)
    .join(Access, Access.principal == Withdrawal.principal)
    .where(Withdrawal.done_at.is_(None))
)
_SENDER_TOPIC = select(SenderRow.topic).where(
    SenderRow.stream_id == bindparam("stream"),
    or_(SenderRow.user_id == bindparam("user"), SenderRow.user_id.is_(None)),
    SenderRow.state == SenderState.ACTIVE,
    ~SenderRow.readmits,
)


def is_access_principal(name: str) -> bool:
    """Whether a Kafka user is one that was given out for an access, and none of somebody else's."""
    return is_new_principal_name(name, frozenset(AccessKind))


@dataclass(frozen=True, slots=True)
class _Reached:
    """What an access is to, and all categories there.

    `deciding` are the categories on which it depends what is visible of the reach. `weak` counts
    for outputs alone. If its query names roles (000 §4.1), `by_roles` are these and their juniors:
    no other one counts. `exact` says that each role counts by itself (000 §5.2.1). While its query
    `waits` to be merged anew, no access to it gets more.
    """

    object: Object
    relation: Relation
    reach: Label
    deciding: Label
    weak: bool
    by_roles: frozenset[int] | None
    exact: bool
    waits: bool


@dataclass
class Settlement:
    """Settles accesses within one change; `topics` collects those that Kafka must be told about.

    They include what an earlier change took from the same accesses and Kafka was not told yet: who
    takes a right that somebody else is just taking, or takes it again after a failure, must not be
    told that it is gone before it is. `opened_classes_of` collects the ids of the outputs that a
    class was opened for.

    However many accesses a change touches, what they have in common is looked up once.
    """

    change: Change
    now: datetime
    topics: set[str] = field(default_factory=set)
    opened_classes_of: set[int] = field(default_factory=set)
    _reached: dict[int, _Reached] = field(default_factory=dict)
    _divisible: dict[int, bool] = field(default_factory=dict)

    @cached_property
    def _topics_of(self) -> AccessTopics:
        return AccessTopics(self.change.session, self.now, self.topics, self.opened_classes_of)

    @cached_property
    def _sight(self) -> Sight:
        return Sight(self.change.session)

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self.change.session, self._sight.role_views)

    def settle(self, which: ColumnElement[bool]) -> None:
        """Settle the live accesses that `which` selects."""
        self._take_up(which)
        for some in slices(list(self.change.session.scalars(_LIVE.where(which)))):
            self._settle(some)

    def settle_new(self, access: Access, subject: Subject) -> None:
        """Give an access that `subject` just made, with its active roles, what these allow.

        Nothing was ever taken from it, so there is nothing to take up.
        """
        self._sight.look_up_floors([access.user_id])
        self._give(access, subject)

    def backfill(self, access: Access) -> DeliveryClass:
        """Give a live subscription a class for older results, as far as it may see them now.

        Raises Denied if it shows nothing now.
        """
        (subject,) = subjects_of_accesses(self.change.session, [access], self.now)
        self._sight.look_up_floors([access.user_id])
        output = self._reach(access)
        needed = (Permission.VIEW_OBJECT, Permission.SUBSCRIBE)
        allowed = all(self._sight.is_allowed(subject, right, output.object) for right in needed)
        ended = self._has_ended(access, subject) or output.waits or not access.topics
        rights = self._rights_to(access, subject, output) if allowed and not ended else None
        if rights is None:
            raise Denied(f"{access.principal} shows nothing of {output.object.name} now")
        return self._topics_of.backfill(access, output.object, rights)

    def cut_leaving(self, accesses: Sequence[Access]) -> None:
        """Take from these what other topics of theirs have taken the place of."""
        for access in accesses:
            self._topics_of.cut_leaving(access)

    def end(self, access: Access) -> None:
        """End the access for good."""
        self._take_up(Access.id == access.id)
        self._end(access)

    def _take_up(self, which: ColumnElement[bool]) -> None:
        self.topics |= undone_topics(self.change.session, which)

    def _end(self, access: Access) -> None:
        self._topics_of.reach(access, None)
        access.ended_at = self.now

    def _settle(self, accesses: Sequence[Access]) -> None:
        session = self.change.session
        subjects = subjects_of_accesses(session, accesses, self.now)
        self._sight.look_up_floors({access.user_id for access in accesses})
        # What is looked up for one does not depend on what another was given.
        with session.no_autoflush:
            for access, subject in zip(accesses, subjects, strict=True):
                if self._has_ended(access, subject):
                    self._end(access)
                else:
                    self._give(access, subject)

    def _has_ended(self, access: Access, subject: Subject) -> bool:
        """It ends with its session, its user's lock, its object, or the loss of a role it has."""
        if self._reach(access).object.removed_at or subject.barred is not None:
            return True
        return {role.id for role in access.roles} != subject.active_role_ids

    def _reach(self, access: Access) -> _Reached:
        """What the access is to, looked up once."""
        if access.object_id not in self._reached:
            session = self.change.session
            obj = session.get_one(Object, access.object_id)
            row: OutputRow | StreamRow
            if obj.kind == ObjectKind.OUTPUT:
                row = session.get_one(OutputRow, obj.id)
            else:
                row = session.get_one(StreamRow, obj.id)
            weak = isinstance(row, OutputRow) and row.weak
            relation = from_stored(Relation, row.relation)
            reach = self._sight.reaches.of(relation)
            deciding = self._sight.reaches.clauses.deciding(reach)
            query = self._query_of(row) if isinstance(row, OutputRow) else None
            by_roles = None if query is None else counting_roles(session, query)
            waits = query is not None and query.views_changed_at is not None
            exact = isinstance(row, OutputRow) and row.placement == Placement.ROLES
            self._reached[obj.id] = _Reached(
                *(obj, relation, reach, deciding, weak, by_roles, exact, waits)
            )
        return self._reached[access.object_id]

    def _query_of(self, output: OutputRow) -> QueryRow:
        return self.change.session.get_one(QueryRow, output.query_id)

    def _give(self, access: Access, subject: Subject) -> None:
        """Give the access what its rights show, and take from it what they do not."""
        reached = self._reach(access)
        obj = reached.object
        kind = AccessKind(access.kind)
        needed = (Permission.VIEW_OBJECT, kind.needed[1])
        topics = self._topics_of
        if not all(self._sight.is_allowed(subject, right, obj) for right in needed):
            topics.reach(access, None)
        elif kind is AccessKind.SEND:
            topics.reach(access, self._sender_topic(obj.id, access.user_id))
        elif kind is AccessKind.QUARANTINE:
            may = self._sight.may_read_quarantine(subject, obj)
            topics.reach(access, quarantine_topic(obj.name) if may else None)
        else:
            self._deliver(access, subject, reached)

    def _sender_topic(self, stream_id: int, user_id: int) -> str | None:
        """The user's topic in the stream, or the one that all users of the stream write."""
        asked = {"stream": stream_id, "user": user_id}
        return self.change.session.scalar(_SENDER_TOPIC, asked)

    def _deliver(self, access: Access, subject: Subject, output: _Reached) -> None:
        rights = self._rights_to(access, subject, output)
        if rights is None:
            self._topics_of.reach(access, None)
            return
        divisible = partial(self._is_divisible, output.object.id)
        self._topics_of.deliver(access, output.object, rights, divisible, opens=not output.waits)

    def _rights_to(self, access: Access, subject: Subject, output: _Reached) -> Delivery | None:
        """The results that the subject may get by the access; None if there are none."""
        roles = subject.role_ids
        if output.by_roles is not None:
            subject = replace(subject, role_ids=subject.role_ids & output.by_roles)
        clearance = self._sight.clearance(subject, output.deciding)
        # No tuple carries a clause alone, so roles without a right to read show nothing.
        own = clearance.cut_to(output.reach)
        empty = own.bits == 0 and not output.relation.public
        seen = not empty and self._sight.sees_all_of(subject, output.object)
        ways = self._ways(subject, output) if output.exact and seen else ()
        if not seen or (output.exact and not ways) or not self._has_one_window(access, roles):
            return None
        # Weak delivery shows parts of what no floor has.
        weak = output.weak and subject.user_id not in self._sight.withheld
        if output.exact:
            together = Clearance(reduce(or_bits, (way.bits for way in ways)))
            return Delivery(together, ways=ways if len(ways) > 1 else ())
        return Delivery(clearance, weak)

    def _ways(self, subject: Subject, output: _Reached) -> tuple[Clearance, ...]:
        """What each active role of the subject sees of the output, with its juniors and no other.

        What another role sees too is left out.
        """
        found: set[Clearance] = set()
        for roles in juniors_of(self.change.session, subject.active_role_ids).values():
            alone = replace(subject, role_ids=roles & subject.role_ids)
            clearance = self._sight.clearance(alone, output.deciding)
            shown = clearance.cut_to(output.reach).bits != 0 or output.relation.public
            if shown and self._sight.sees_all_of(alone, output.object):
                found.add(clearance)
        widest = (
            each
            for each in found
            if not any(each != other and each.bits & ~other.bits == 0 for other in found)
        )
        return tuple(sorted(widest, key=lambda each: each.bits))

    def _has_one_window(self, access: Access, roles: frozenset[int]) -> bool:
        """Whether the access is the one by which policies show its user windows of a stream."""
        output, windows = access.object_id, self._windows
        if windows.several_in(roles, output):
            return False
        return windows.in_the_way(access.user_id, roles, output, access) is None

    def _is_divisible(self, output_id: int) -> bool:
        if output_id not in self._divisible:
            self._divisible[output_id] = is_divisible(self.change.session, output_id)
        return self._divisible[output_id]


def undone_topics(session: orm.Session, which: ColumnElement[bool]) -> set[str]:
    """The topics whose withdrawal from accesses that `which` selects is decided and not done.

    Ended accesses count, too: theirs are the ones that nobody would ask for again.
    """
    return set(session.scalars(_UNDONE.where(which)))


def of_role(change: Change, role_id: int) -> ColumnElement[bool]:
    """The accesses that hold the role, directly or through a senior one."""
    return of_holders(seniors_of(change.session, [role_id]).get(role_id, frozenset()))


def of_holders(roles: Collection[int]) -> ColumnElement[bool]:
    """The accesses with one of these roles."""
    return Access.id.in_(select(AccessRole.access_id).where(AccessRole.role_id.in_(roles)))


def of_named_above(change: Change, role_id: int) -> ColumnElement[bool]:
    """The accesses to outputs of queries that name the role or a senior one (000 §4.1).

    They count the junior roles of the roles that they name, whichever of these an access holds.
    """
    seniors = seniors_of(change.session, [role_id]).get(role_id, frozenset())
    named = select(QueryAsRole.query_id).where(QueryAsRole.role_id.in_(seniors))
    outputs = select(OutputRow.object_id).where(OutputRow.query_id.in_(named))
    return of_objects(*change.session.scalars(outputs))


def of_senders(change: Change, role_id: int) -> ColumnElement[bool]:
    """The accesses that the role's right to SEND can take a declared aggregate from.

    They are all outputs of who is a member of the role or of a senior one, with whatever roles.
    """
    return and_(Access.kind == AccessKind.OUTPUT, Access.user_id.in_(members_of(change, role_id)))


def members_of(change: Change, role_id: int) -> Select[int]:
    """The ids of the users that hold the role, directly or through a senior one."""
    holders = seniors_of(change.session, [role_id]).get(role_id, frozenset())
    return select(Membership.user_id).where(Membership.role_id.in_(holders)).distinct()


def of_user(user: User) -> ColumnElement[bool]:
    """The accesses of a user."""
    return Access.user_id == user.id


def of_users(user_ids: Sequence[int]) -> ColumnElement[bool]:
    """The accesses of these users."""
    return Access.user_id.in_(user_ids)


def of_objects(*object_ids: int) -> ColumnElement[bool]:
    """The accesses to these objects."""
    return Access.object_id.in_(object_ids)


def of_sessions(*session_ids: int) -> ColumnElement[bool]:
    """The accesses that end with these sessions."""
    return Access.session_id.in_(session_ids)
