"""Which executions compute the outputs of a query, when it is added and when it is started again.

Nobody learns here that somebody else runs an equal query: who is told that an engine is full would
be told so without it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import orm, select

from catalog.admission import engines_for
from catalog.assignments import assign
from catalog.audit import PLATFORM
from catalog.engines import LEVELS
from catalog.errors import Conflict
from catalog.executions import to_join
from catalog.models import Assignment, DeliveryClass, ExecutionRow, OutputRow, Role
from catalog.moves import carry_out, next_moves
from catalog.permission import ObjectKind, Permission
from catalog.plan import Plan, sources
from catalog.stored_form import from_stored
from secadmin.control.platform import Platform
from secadmin.control.query_views import outputs_of
from secadmin.control.work import Caller, reading

_Offsets = Mapping[str, Mapping[str, int]]
_MARGIN = timedelta(minutes=2)
"""What a run takes at most until it applies that an output has left it, and clocks that differ."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The id of the execution that computes an output, whether it is new, and its tasks."""

    execution: int
    is_new: bool
    slots: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new output needs of an execution.

    `key` is empty if it runs alone. `plan` is encoded. `whole_ms` is that of
    `catalog.models.ExecutionRow`.
    """

    key: str
    plan: dict[str, Any]
    begins: _Offsets
    slots: int
    whole_ms: int | None = None


def compute(session: orm.Session, wanted: Wanted) -> Computed:
    """The execution for a new output: one that runs an equal query already, or a new one.

    What keeps state gets a new one, and moves later (`catalog.moves`).
    """
    shared = to_join(session, wanted.key) if wanted.whole_ms is None else None
    if shared is not None:
        return Computed(shared, False, wanted.slots)
    made = ExecutionRow(
        key=wanted.key,
        plan=wanted.plan,
        starting_offsets=dict(wanted.begins),
        slots=wanted.slots,
        whole_ms=wanted.whole_ms,
    )
    session.add(made)
    session.flush()
    return Computed(made.id, True, wanted.slots)


def role_of_space(session: orm.Session, roles: Collection[int] | None) -> str | None:
    """The name of the role in whose space a query is that is for these roles.

    A query for several roles, or for all, is in the space of none.
    """
    if roles is None or len(roles) != 1:
        return None
    (only,) = roles
    return session.get_one(Role, only).name


def assign_new(
    platform: Platform,
    session: orm.Session,
    computed: Iterable[Computed],
    engines: Collection[str],
) -> None:
    """Give new executions of a query their engines, of these. Raises Conflict if none has room.

    What joins an execution needs room as well, as if it were new.
    """
    found = list(computed)
    # The ids of executions are positive.
    wanted = {
        each.execution if each.is_new else -number: each.slots
        for number, each in enumerate(found, start=1)
    }
    engines_for(session, wanted, engines, platform.limits)
    new = {each.execution: each.slots for each in found if each.is_new}
    assign(session, new, engines, platform.limits)


def assign_again(
    platform: Platform,
    session: orm.Session,
    executions: Collection[int],
    roles: Collection[int] | None,
) -> None:
    """Give executions that start again their engines. Raises Conflict if no engine has room.

    What runs in level engines does so as long as it is there, and goes on in the same ones.
    """
    usual = platform.spaces.homes(role_of_space(session, roles))
    of_classes = select(DeliveryClass.execution_id).where(
        DeliveryClass.execution_id.in_(executions)
    )
    classes = set(session.scalars(of_classes))
    wanted: dict[tuple[str, ...], dict[int, int]] = defaultdict(dict)
    for row in session.scalars(select(ExecutionRow).where(ExecutionRow.id.in_(executions))):
        assigned = session.get(Assignment, row.id)
        if row.id not in classes and (assigned is None or assigned.home != LEVELS):
            wanted[usual][row.id] = row.slots
        elif assigned is not None and assigned.parked_because:
            wanted[assigned.home,][row.id] = row.slots
    for engines, slots in wanted.items():
        assign(session, slots, engines, platform.limits)


def beginnings(platform: Platform, caller: Caller, query: str) -> Mapping[int, _Offsets]:
    """Where the executions begin that the query's outputs got when they left others, by their ids.

    Needs SET QUERY STATUS. Raises Unavailable.
    """
    with reading(platform, caller, "prepare start", f"query {query}") as view:
        found = view.find(ObjectKind.QUERY, query)
        view.require(Permission.SET_QUERY_STATUS, found)
        waiting = _waiting(view.session, [output.id for output in outputs_of(view, found)])
        wanted = {row.id: (_topics(row), row.begins_at) for row in waiting}
    return {
        id_: platform.kafka.offsets_at(topics, at - _MARGIN)
        for id_, (topics, at) in wanted.items()
        if at is not None
    }


def begin_there(
    session: orm.Session, output_ids: Collection[int], found: Mapping[int, _Offsets]
) -> None:
    """Let the executions of these outputs begin there. Raises Conflict if one is not in `found`."""
    for row in _waiting(session, output_ids):
        if row.id not in found:
            raise Conflict("the query was stopped meanwhile; start it again")
        row.starting_offsets, row.begins_at = dict(found[row.id]), None
    session.flush()


def _waiting(session: orm.Session, output_ids: Collection[int]) -> Sequence[ExecutionRow]:
    """The executions of these outputs that have not run yet."""
    rows = select(ExecutionRow).join(OutputRow, OutputRow.execution_id == ExecutionRow.id)
    own = (OutputRow.object_id.in_(output_ids), ExecutionRow.begins_at.is_not(None))
    return session.scalars(rows.where(*own)).all()


def _topics(row: ExecutionRow) -> list[str]:
    return sorted(relation.topic for relation in sources(from_stored(Plan, row.plan)))


def move_outputs(platform: Platform) -> None:
    """Do the next step of each output that moves, or may begin to (`catalog.moves`)."""
    with platform.catalog.read() as session:
        if not next_moves(session, platform.clock()):
            return
    with platform.catalog.change(PLATFORM) as change:
        moves = next_moves(change.session, change.now)
        carry_out(change.session, moves)
        detail = {
            "begun": sorted(moves.begun),
            "given up": sorted(moves.given_up),
            "turned": sorted(moves.turned),
            "completed": sorted(moves.completed),
        }
        change.audit("move outputs", "executions", detail=detail)
        change.bump_generation()
