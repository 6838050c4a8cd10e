"""One operation of one caller. Decisions, change and audit entry are in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import bindparam, orm, select

from catalog.audit import Outcome
from catalog.authorizer import Authorizer
from catalog.errors import Conflict, Denied, InvalidInput, NotFound
from catalog.models import Object, Role, User
from catalog.namespace import SYSTEM_NAME, Namespace, not_found
from catalog.permission import ObjectKind, Permission
from catalog.sessions import authenticate
from catalog.store import Change
from catalog.subject import Subject, subject_of_session
from catalog.wanted import is_in_step, used_topics
from secadmin.control.platform import Platform
from secadmin.control.settlement import Settlement
from secadmin.control.wanted_access import topics_of

NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})
"""What is asked of an operation whose target says it all."""
# Built once, because building it takes longer than running it.
_ROLE = select(Role).where(Role.name == bindparam("name"))


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: a session's token, which each transaction checks again, and the user's name."""

    token: str = field(repr=False)
    user_name: str


@dataclass
class Reading:
    """An operation's view of the catalog. Its decisions and `detail` go to the audit log."""

    session: orm.Session
    subject: Subject
    authorizer: Authorizer
    detail: dict[str, Any] = field(default_factory=dict)

    def require(self, permission: Permission, obj: Object) -> None:
        """Decide, and note the decision. Raises Denied, or NotFound if `obj` is invisible."""
        self.authorizer.require(self.subject, permission, obj)

    def require_sight(self, obj: Object, otherwise: str) -> None:
        """Require VIEW OBJECT on an object that the caller did not name.

        Raises Denied with the message `otherwise`, which must not name the object.
        """
        try:
            self.require(Permission.VIEW_OBJECT, obj)
        except NotFound:
            raise Denied(otherwise) from None

    def may_view(self, obj: Object) -> bool:
        """Say whether the caller may view the object."""
        return self.authorizer.decide(self.subject, Permission.VIEW_OBJECT, obj).allowed

    def holds_system(self, permission: Permission) -> bool:
        """Say whether the caller holds a permission on SYSTEM."""
        system = self.authorizer.system()
        return self.authorizer.decide(self.subject, permission, system).allowed

    def require_system(self, permission: Permission) -> None:
        """Require a permission on SYSTEM."""
        self.require(permission, self.authorizer.system())

    def find(self, kind: ObjectKind, name: str) -> Object:
        """The live object of that kind and name. Raises NotFound if the caller may not view it."""
        if kind is ObjectKind.SYSTEM:
            if name != SYSTEM_NAME:
                raise not_found(kind, name)
            return self.authorizer.system()
        return self.authorizer.find(self.subject, kind, name)

    def user(self, name: str) -> User:
        """The user of that name. Only for callers that hold CHANGE SYSTEM."""
        found = self.session.scalar(select(User).where(User.name == name))
        if found is None:
            raise NotFound(f"there is no user {name!r}")
        return found

    def role(self, name: str) -> Role:
        """The role of that name."""
        found = self.session.scalar(_ROLE, {"name": name})
        if found is None:
            raise NotFound(f"there is no role {name!r}")
        return found

    def require_free(self, namespace: Namespace, name: str) -> None:
        """Raise Conflict if a live object, or one whose topics still exist, has the name."""
        taken = select(Object).where(
            Object.namespace == namespace, Object.name == name, Object.gone_at.is_(None)
        )
        found = self.session.scalar(taken)
        if found is not None and found.removed_at is not None:
            raise Conflict(f"{name!r} is still being removed; {self._why_it_stays(found)}")
        if found is not None:
            raise Conflict(f"the name {name!r} is taken; choose another one")

    def _why_it_stays(self, removed: Object) -> str:
        left = topics_of(self.session, removed)
        if is_in_step(self.session) and used_topics(self.session).intersection(left):
            return "its run has not ended; choose another name, or try again later"
        return "try again in some seconds"

    def reasons(self) -> str:
        """The reasons why it was allowed, for the audit log."""
        return "; ".join(decision.reason for decision in self.authorizer.trail)


@dataclass
class Work(Reading):
    """An operation that changes the catalog."""

    change: Change = field(kw_only=True)
    settlement: Settlement = field(kw_only=True)
    outcome: Outcome = field(default=Outcome.CHANGED, kw_only=True)


@contextmanager
def working(
    platform: Platform,
    caller: Caller,
    action: str,
    target: str,
    asked: Mapping[str, Any] = NOTHING_MORE,
) -> Iterator[Work]:
    """Run an operation: commit it with its audit entry, then change Kafka to match the catalog.

    `asked` is in the detail of the entry, also of a refusal. A refusal goes to the audit log, and
    nothing else happens. Raises Unavailable if the change is committed but Kafka could not be
    changed yet. One that may take what users can read calls `catalog.floors.remember_readable`
    first.
    """
    with changing(platform, caller, action, target, asked) as work:
        yield work
    carry_out(platform, work)


def carry_out(platform: Platform, work: Work) -> None:
    """Change Kafka to match the catalog, after an operation was committed. Raises Unavailable."""
    platform.alignment.align(work.settlement.topics)
    if work.settlement.topics:
        platform.refills_due.set()


@contextmanager
def changing(
    platform: Platform,
    caller: Caller,
    action: str,
    target: str,
    asked: Mapping[str, Any] = NOTHING_MORE,
) -> Iterator[Work]:
    """The first part of `working`: run an operation, and commit it. The caller calls `carry_out`.

    For a block that holds locks which must not be held for as long as Kafka may take.
    """
    with (
        _noting_refusals(platform, caller, action, target, asked) as trail,
        platform.catalog.change(caller.user_name) as change,
    ):
        login = authenticate(change.session, caller.token, change.now)
        work = Work(
            session=change.session,
            subject=subject_of_session(change.session, login),
            authorizer=Authorizer(change.session),
            detail=dict(asked),
            change=change,
            settlement=Settlement(change, change.now),
        )
        trail.append(work.authorizer)
        yield work
        change.audit(action, target, work.outcome, work.reasons(), work.detail)


@contextmanager
def reading(platform: Platform, caller: Caller, action: str, target: str) -> Iterator[Reading]:
    """Read the catalog for the caller. The decision goes to the audit log."""
    with _noting_refusals(platform, caller, action, target) as trail:
        with platform.catalog.read() as session:
            login = authenticate(session, caller.token, platform.clock())
            view = Reading(session, subject_of_session(session, login), Authorizer(session))
            trail.append(view.authorizer)
            yield view
        platform.catalog.record(
            caller.user_name, action, target, Outcome.ALLOWED, view.reasons(), view.detail
        )


@contextmanager
def _noting_refusals(
    platform: Platform,
    caller: Caller,
    action: str,
    target: str,
    asked: Mapping[str, Any] = NOTHING_MORE,
) -> Iterator[list[Authorizer]]:
    """Note the reason of a refusal. The audit log has the full reason; the error may say less."""
    used: list[Authorizer] = []
    try:
        yield used
    except (Denied, NotFound, Conflict, InvalidInput) as refusal:
        decisions = [decision for authorizer in used for decision in authorizer.trail]
        denied = [decision.reason for decision in decisions if not decision.allowed]
        refused = isinstance(refusal, Denied | NotFound)
        platform.catalog.record(
            caller.user_name,
            action,
            target,
            Outcome.DENIED if refused else Outcome.FAILED,
            "; ".join(denied) or refusal.detail,
            asked,
        )
        raise
