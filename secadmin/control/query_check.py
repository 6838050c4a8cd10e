"""Checks a query as if it were added: what it would need, and whom it would reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import select

from catalog.authorizer import Authorizer
from catalog.checked_plan import CheckedPlan
from catalog.label import Label
from catalog.models import User
from catalog.permission import Permission
from catalog.plan import Plan, sources
from catalog.reaches import Reaches
from catalog.relation import RelationKind
from catalog.role_views import WHOLE, RoleViews
from catalog.subject import Subject, subjects_of_users
from secadmin.control.category_words import category_words
from secadmin.control.platform import Platform
from secadmin.control.prepared_query import PreparedQuery, prepare
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.query_room import ends_of_sources, require_engines, require_room
from secadmin.control.room import reads_of
from secadmin.control.work import Caller, Reading, reading

MAX_USERS = 1_000


@dataclass(frozen=True, slots=True)
class NeededRight:
    """What results of an output can carry, and what a subscriber needs to get these results."""

    carries: str
    needs: str


@dataclass(frozen=True, slots=True)
class Reached:
    """The users that could get all results of an output, or some, if they may SUBSCRIBE.

    All their roles count. `more` says that there are more users than were looked at.
    """

    all: tuple[str, ...]
    some: tuple[str, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class CheckedOutput:
    """An output that the query would have.

    `tasks` is the number of tasks that it would take, and `reads` how often it reads a stream or
    an output. Its results lag behind the newest tuple by `delay_ms` at most. `reached` is None
    unless the caller holds CHANGE SYSTEM.
    """

    plan: CheckedPlan
    tasks: int
    reads: int
    delay_ms: int
    rights: tuple[NeededRight, ...]
    reached: Reached | None


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """A query that could be added now. `free_tasks` is the room of the freest engine before.

    `allowed_because` has the reason of each permission that was needed.
    """

    outputs: Mapping[str, CheckedOutput]
    notes: tuple[str, ...]
    free_tasks: int
    allowed_because: tuple[str, ...]


def check_query(platform: Platform, caller: Caller, wanted: QueryDefinition) -> QueryCheck:
    """Check a query as `add_query` does, and add nothing. Needs what `add_query` needs.

    Raises what `add_query` raises. A moment later the answer may be another one.
    """
    target = f"query {wanted.name}"
    with reading(platform, caller, "check query", target) as view:
        prepared = prepare(platform, view, wanted)
        require_room(platform, view, prepared)
        needed = {name: _rights(view, prepared, each) for name, each in prepared.plans.items()}
        reached = {name: _reached(view, prepared, each) for name, each in prepared.plans.items()}
        because = tuple(dict.fromkeys(each.reason for each in view.authorizer.trail))
    offsets = ends_of_sources(platform, prepared)
    with reading(platform, caller, "check room for query", target) as view:
        room = require_engines(platform, view.session, prepared, offsets)
    outputs = {
        name: CheckedOutput(
            plan=each,
            tasks=room.tasks[name],
            reads=reads_of(each.plan),
            delay_ms=each.delay_ms,
            rights=needed[name],
            reached=reached[name],
        )
        for name, each in prepared.checked.items()
    }
    return QueryCheck(outputs, prepared.notes, room.free, because)


def _rights(view: Reading, prepared: PreparedQuery, plan: Plan) -> tuple[NeededRight, ...]:
    reach = Reaches(view.session).of_new(plan, prepared.relations.level)
    words = (category_words(view, bit) for bit in reach.categories())
    return tuple(NeededRight(*each) for each in words)


def _reached(view: Reading, prepared: PreparedQuery, plan: Plan) -> Reached | None:
    system = view.authorizer.system()
    if not view.authorizer.decide(view.subject, Permission.CHANGE_SYSTEM, system).allowed:
        return None
    reaches, views = Reaches(view.session), RoleViews(view.session)
    reach = reaches.of_new(plan, prepared.relations.level)
    users = view.session.scalars(select(User).order_by(User.name).limit(MAX_USERS + 1)).all()
    every, some = [], []
    for subject in subjects_of_users(view.session, users[:MAX_USERS]):
        if subject.barred is not None or not _sees(views, prepared, plan, subject.role_ids):
            continue
        if _holds(view, reaches, subject, reach) == reach:
            every.append(subject.user_name)
        elif _may_get_some(view, reaches, subject, plan):
            some.append(subject.user_name)
    return Reached(tuple(every), tuple(some), len(users) > MAX_USERS)


def _holds(view: Reading, reaches: Reaches, subject: Subject, reach: Label) -> Label:
    """The part of a reach that the subject holds."""
    deciding = reaches.clauses.deciding(reach)
    rights = Authorizer(view.session).clearance_of(subject, deciding)
    return Label(reaches.clauses.cleared(rights).bits & reach.bits)


def _may_get_some(view: Reading, reaches: Reaches, subject: Subject, plan: Plan) -> bool:
    """Whether the subject holds a category of one of the relations, or one of them is public."""
    return any(
        relation.public or _holds(view, reaches, subject, reaches.of(relation)).bits
        for relation in sources(plan)
    )


def _sees(views: RoleViews, prepared: PreparedQuery, plan: Plan, roles: Collection[int]) -> bool:
    """Whether policies let the roles see as much of each stream as the plan reads."""
    seen_as = prepared.relations.as_roles
    for relation in sources(plan):
        if relation.kind is not RelationKind.STREAM:
            if not views.cover_output(roles, relation.object_id, seen_as):
                return False
            continue
        viewed = prepared.relations.viewed.get(relation.object_id)
        wanted = WHOLE if viewed is None else viewed.view
        if not views.cover(roles, relation.object_id, wanted, seen_as):
            return False
    return True
