"""Settlement: after a change, every access gets the topic that its rights allow now.

It runs inside the change's transaction, so that the decision, its consequences and the audit entry
are one. Kafka hears of it afterwards (`secadmin.control.alignment`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, orm, select
from sqlalchemy.orm import joinedload, selectinload

from catalog.authorizer import Authorizer
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.models import (
    Access,
    AccessRole,
    DeliveryClass,
    Membership,
    Object,
    OutputRow,
    SenderRow,
    StreamRow,
    User,
    Withdrawal,
)
from catalog.permission import ObjectKind, Permission
from catalog.plan_json import decode
from catalog.relation import Relation
from catalog.roles import seniors_of
from catalog.sender_state import SenderState
from catalog.store import Change
from catalog.subject import Subject, subjects_of_accesses
from catalog.topics import out_topic, quarantine_topic
from secadmin.control.slices import slices
from secadmin.kafka.principals import is_new_principal_name

_OPEN_CLASS = select(DeliveryClass).where(
    DeliveryClass.output_id == bindparam("output"),
    DeliveryClass.clearance == bindparam("clearance"),
    DeliveryClass.weak == bindparam("weak"),
    DeliveryClass.closed_at.is_(None),
)
_SENDER_TOPIC = select(SenderRow.topic).where(
    SenderRow.stream_id == bindparam("stream"),
    or_(SenderRow.user_id == bindparam("user"), SenderRow.user_id.is_(None)),
    SenderRow.state == SenderState.ACTIVE,
)
OUTPUT, QUARANTINE, SEND = "output", "quarantine", "send"


def is_access_principal(name: str) -> bool:
    """Whether a Kafka user is one that was given out for an access, and none of somebody else's."""
    return is_new_principal_name(name, {OUTPUT, QUARANTINE, SEND})


@dataclass(frozen=True, slots=True)
class Target:
    """The topic that an access reaches, and for an output the class that the topic serves."""

    topic: str
    class_id: int | None = None


@dataclass(frozen=True, slots=True)
class _Reached:
    """What an access is to; `weak` counts for outputs alone."""

    object: Object
    relation: Relation
    weak: bool


@dataclass
class Settlement:
    """Settles accesses within one change; `topics` collects those that Kafka must be told about.

    They include what an earlier change took from the same accesses and Kafka was not told yet: who
    takes a right that somebody else is just taking, or takes it again after a failure, must not be
    told that it is gone before it is.

    However many accesses a change touches, what they have in common is looked up once.
    """

    change: Change
    now: datetime
    topics: set[str] = field(default_factory=set)
    _allowed: dict[tuple[object, ...], bool] = field(default_factory=dict)
    _clearances: dict[tuple[object, ...], Clearance] = field(default_factory=dict)
    _reached: dict[int, _Reached] = field(default_factory=dict)
    _classes: dict[tuple[object, ...], DeliveryClass] = field(default_factory=dict)

    @cached_property
    def _authorizer(self) -> Authorizer:
        return Authorizer(self.change.session)

    def settle(self, which: ColumnElement[bool]) -> None:
        """Settle the live accesses that `which` selects."""
        self._take_up(which)
        live = (
            select(Access)
            .where(Access.ended_at.is_(None), which)
            .order_by(Access.id)
            .options(selectinload(Access.roles), joinedload(Access.user))
        )
        for some in slices(list(self.change.session.scalars(live))):
            self._settle(some)

    def settle_new(self, access: Access, subject: Subject) -> None:
        """Give an access that `subject` just made, with its active roles, the topic that it allows.

        Nothing was ever taken from it, so there is nothing to take up.
        """
        self._move(access, self._target(access, subject))

    def end(self, access: Access) -> None:
        """End the access for good."""
        self._take_up(Access.id == access.id)
        self._end(access)

    def _take_up(self, which: ColumnElement[bool]) -> None:
        self.topics |= undone_topics(self.change.session, which)

    def _end(self, access: Access) -> None:
        self._move(access, None)
        access.ended_at = self.now

    def _settle(self, accesses: Sequence[Access]) -> None:
        session = self.change.session
        subjects = subjects_of_accesses(session, accesses, self.now)
        # What is looked up for one does not depend on where another was moved to.
        with session.no_autoflush:
            for access, subject in zip(accesses, subjects, strict=True):
                if self._has_ended(access, subject):
                    self._end(access)
                else:
                    self._move(access, self._target(access, subject))

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
                weak = row.weak
            else:
                row, weak = session.get_one(StreamRow, obj.id), False
            self._reached[obj.id] = _Reached(obj, decode(row.relation), weak)
        return self._reached[access.object_id]

    def _target(self, access: Access, subject: Subject) -> Target | None:
        reached = self._reach(access)
        obj = reached.object
        needed = {
            OUTPUT: (Permission.VIEW_OBJECT, Permission.SUBSCRIBE),
            QUARANTINE: (Permission.VIEW_OBJECT, Permission.READ_TUPLE),
            SEND: (Permission.VIEW_OBJECT, Permission.SEND),
        }[access.kind]
        if not all(self._is_allowed(subject, right, obj) for right in needed):
            return None
        if access.kind == SEND:
            topic = self._sender_topic(obj.id, access.user_id)
            return Target(topic) if topic is not None else None
        if access.kind == QUARANTINE:
            return self._quarantine(subject, reached)
        return self._output(subject, reached)

    def _sender_topic(self, stream_id: int, user_id: int) -> str | None:
        """The user's topic in the stream, or the one that all users of the stream write."""
        asked = {"stream": stream_id, "user": user_id}
        return self.change.session.scalar(_SENDER_TOPIC, asked)

    def _is_allowed(self, subject: Subject, permission: Permission, obj: Object) -> bool:
        """The authorizer's decision, which depends on `_rights` and ownership alone."""
        key = (_rights(subject), subject.user_id == obj.owner_id, permission, obj.id)
        if key not in self._allowed:
            self._allowed[key] = self._authorizer.decide(subject, permission, obj).allowed
        return self._allowed[key]

    def _clearance(self, subject: Subject, reach: Label) -> Clearance:
        key = (_rights(subject), reach)
        if key not in self._clearances:
            self._clearances[key] = self._authorizer.clearance_of(subject, reach)
        return self._clearances[key]

    def _quarantine(self, subject: Subject, stream: _Reached) -> Target | None:
        reach = stream.relation.reach
        covered = self._clearance(subject, reach).covers(reach)
        return Target(quarantine_topic(stream.object.name)) if covered else None

    def _output(self, subject: Subject, output: _Reached) -> Target | None:
        clearance = self._clearance(subject, output.relation.reach)
        if clearance.bits == 0 and not output.relation.public:
            return None
        key = (output.object.id, clearance.bits, output.weak)
        if key not in self._classes:
            self._classes[key] = self._class(output.object, clearance, output.weak)
        found = self._classes[key]
        return Target(found.topic, found.id)

    def _class(self, output: Object, clearance: Clearance, weak: bool) -> DeliveryClass:
        wire = Label(clearance.bits).to_wire()
        session = self.change.session
        asked = {"output": output.id, "clearance": wire, "weak": weak}
        found = session.scalar(_OPEN_CLASS, asked)
        if found is None:
            name = secrets.token_hex(8)
            found = DeliveryClass(
                output_id=output.id,
                name=name,
                topic=out_topic(output.name, name),
                clearance=wire,
                weak=weak,
            )
            session.add(found)
            session.flush()
        return found

    def _move(self, access: Access, target: Target | None) -> None:
        topic = target.topic if target else None
        access.class_id = target.class_id if target else None
        if access.topic == topic:
            return
        if access.topic is not None:
            lost = Withdrawal(principal=access.principal, topic=access.topic, decided_at=self.now)
            self.change.session.add(lost)
            self.topics.add(access.topic)
        if topic is not None:
            self.topics.add(topic)
        access.topic = topic


def _rights(subject: Subject) -> tuple[object, ...]:
    """All that a clearance depends on: users with equal roles may differ in what they send to."""
    return subject.role_ids, frozenset(subject.sends_to)


def undone_topics(session: orm.Session, which: ColumnElement[bool]) -> set[str]:
    """The topics whose withdrawal from accesses that `which` selects is decided and not done.

    Ended accesses count, too: theirs are the ones that nobody would ask for again.
    """
    taken = select(Withdrawal.topic).join(Access, Access.principal == Withdrawal.principal)
    return set(session.scalars(taken.where(Withdrawal.done_at.is_(None), which)))


def of_role(change: Change, role_id: int) -> ColumnElement[bool]:
    """The accesses that hold the role, directly or through a senior one."""
    holders = seniors_of(change.session, [role_id]).get(role_id, frozenset())
    return Access.id.in_(select(AccessRole.access_id).where(AccessRole.role_id.in_(holders)))


def of_senders(change: Change, role_id: int) -> ColumnElement[bool]:
    """The accesses that the role's right to SEND can take a declared aggregate from.

    They are all outputs of who is a member of the role or of a senior one, with whatever roles.
    """
    return and_(Access.kind == OUTPUT, Access.user_id.in_(members_of(change, role_id)))


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
