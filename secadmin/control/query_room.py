"""Whether there is room for a new query: its owner's limits, and an engine with free tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import orm

from catalog.admission import engines_for, runs_in, slots_of, taken_slots
from catalog.plan import sources
from secadmin.control import declared
from secadmin.control.platform import Platform
from secadmin.control.prepared_query import PreparedQuery
from secadmin.control.room import require_room_for_topics, require_room_to_run
from secadmin.control.shared_executions import role_of_space
from secadmin.control.work import Reading


@dataclass(frozen=True, slots=True)
class EngineRoom:
    """The tasks that each output of a query takes, and how many the freest engine has before."""

    tasks: Mapping[str, int]
    free: int


def require_room(platform: Platform, view: Reading, prepared: PreparedQuery) -> None:
    """Raise InvalidInput or Conflict if the caller may not have the query beside what runs now."""
    plans = prepared.plans.values()
    declared.require_alone(view.session, plans)
    require_room_for_topics(platform.user_limits, view, len(plans))
    require_room_to_run(platform.user_limits, view.session, view.subject.user_id, plans)


def ends_of_sources(platform: Platform, prepared: PreparedQuery) -> Mapping[str, Mapping[str, int]]:
    """Where the topics that the query reads end now. Raises Unavailable."""
    read = {relation.topic for plan in prepared.plans.values() for relation in sources(plan)}
    return platform.kafka.end_offsets(sorted(read))


def require_engines(
    platform: Platform,
    session: orm.Session,
    prepared: PreparedQuery,
    offsets: Mapping[str, Mapping[str, int]],
) -> EngineRoom:
    """Raise Conflict if no engine has room for the query. `offsets` are of `ends_of_sources`."""
    placement = prepared.choices.placement
    role = role_of_space(session, prepared.relations.as_roles)
    engines = platform.spaces.homes(role, placement)
    runs = runs_in(engines, placement, platform.limits)
    tasks = {name: slots_of(plan, offsets, runs) for name, plan in prepared.plans.items()}
    # The outputs have no ids yet. The ids of executions are positive.
    slots = {-number: each for number, each in enumerate(tasks.values(), start=1)}
    engines_for(session, slots, engines, platform.limits)
    taken = min(taken_slots(session, engines).values())
    return EngineRoom(tasks, max(0, platform.limits.slots - taken))
