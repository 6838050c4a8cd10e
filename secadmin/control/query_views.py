"""Queries as callers see them. How much a caller sees depends on its rights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from catalog.executions import executions_of, run_names_of, sharing
from catalog.models import Object, OutputInput, OutputRow, QueryRow, RunStatus
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.plan import Plan, sources
from catalog.run_state import state_of_query
from catalog.stored_form import from_stored
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, Reading, reading

DOES_NOT_FIT = "policies have changed what its roles see, and it does not fit that"
"""Why a query was stopped. Behind it comes what it names wrongly."""


@dataclass(frozen=True, slots=True)
class QueryView:
    """A query as a caller sees it. `state` and `message` never hold data.

    `since` is the time since when it has this state, if its engine has reported it. `withheld` is
    the number of withheld tuples by kind, and `sharing` that of the outputs, of all users' queries,
    that its executions compute; both are None unless the caller holds CHANGE SYSTEM.

    `text` is empty if the caller may not view everything that the query names. `roles` are
    those as which the query sees its streams, if it names some, for those who see the text. The
    query is in the space of a role that it names alone. `outputs` are those that the caller may
    view.
    """

    name: str
    owner: str
    language: str
    text: str
    roles: tuple[str, ...]
    running: bool
    outputs: tuple[str, ...]
    state: str
    message: str
    since: datetime | None
    withheld: Mapping[str, int] | None
    sharing: int | None


def list_queries(platform: Platform, caller: Caller) -> list[QueryView]:
    """The queries that the caller may view."""
    with reading(platform, caller, "list queries", "system") as view:
        queries = view.authorizer.visible_objects(view.subject, ObjectKind.QUERY)
        living = platform.pulse.living(view.session)
        return [_view(view, query, living) for query in queries]


def show_query(platform: Platform, caller: Caller, name: str) -> QueryView:
    """One query, for a caller that may view it."""
    with reading(platform, caller, "show query", f"query {name}") as view:
        query = view.find(ObjectKind.QUERY, name)
        return _view(view, query, platform.pulse.living(view.session))


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """The plan of an output, and where its fan-out is."""

    plan: Plan
    placement: Placement


def show_plans(platform: Platform, caller: Caller, name: str) -> dict[str, ShownPlan]:
    """The plans of a query's outputs. The caller must be allowed to view all that it names."""
    with reading(platform, caller, "show plan", f"query {name}") as view:
        query = view.find(ObjectKind.QUERY, name)
        rows = {
            output.name: view.session.get_one(OutputRow, output.id)
            for output in outputs_of(view, query)
        }
        plans = {
            output: ShownPlan(from_stored(Plan, row.plan), Placement(row.placement))
            for output, row in rows.items()
        }
        for shown in plans.values():
            for relation in sources(shown.plan):
                read = view.session.get_one(Object, relation.object_id)
                view.require_sight(read, "the plan names what you may not view")
        return plans


def outputs_of(view: Reading, query: Object) -> list[Object]:
    """The live outputs of a query, in the order of their creation."""
    own = (
        select(Object)
        .join(OutputRow, OutputRow.object_id == Object.id)
        .where(OutputRow.query_id == query.id, Object.removed_at.is_(None))
    )
    return list(view.session.scalars(own.order_by(Object.id)))


def _view(view: Reading, query: Object, living: Container[str]) -> QueryView:
    row = view.session.get_one(QueryRow, query.id)
    outputs = outputs_of(view, query)
    executions = executions_of(view.session, (output.id for output in outputs))
    names = [name for each in outputs for name in run_names_of(view.session, each.id)]
    statuses = list(view.session.scalars(select(RunStatus).where(RunStatus.name.in_(names))))
    state = state_of_query(view.session, [output.id for output in outputs], row.running, living)
    shows_all = _may_see_counts(view)
    shows_text = _may_view_inputs(view, outputs)
    named = sorted(role.name for role in row.as_roles)
    return QueryView(
        name=query.name,
        owner=query.owner.name if query.owner else "",
        language=row.language,
        text=row.text if shows_text else "",
        roles=tuple(named) if shows_text else (),
        running=row.running,
        outputs=tuple(output.name for output in outputs if view.may_view(output)),
        state=state.state,
        message=_message(row, state.message, shows_text),
        since=state.since,
        withheld=_withheld(statuses) if shows_all else None,
        sharing=_sharing(view, executions) if shows_all else None,
    )


def _message(row: QueryRow, told: str, shows_text: bool) -> str:
    """What is wrong with the query. What its text may not name is only for who sees the text."""
    if row.stopped_because.startswith(DOES_NOT_FIT) and not shows_text:
        return DOES_NOT_FIT
    return row.stopped_because or told


def _sharing(view: Reading, executions: Iterable[int]) -> int:
    """The number of outputs, of whatever query, that the executions compute."""
    return sum(len(sharing(view.session, execution)) for execution in executions)


def _withheld(statuses: list[RunStatus]) -> dict[str, int]:
    return dict(sum((Counter(status.counts) for status in statuses), Counter()))


def _may_see_counts(view: Reading) -> bool:
    """Say whether the caller may see the counts. They reveal something about hidden tuples."""
    system = view.authorizer.system()
    return view.authorizer.decide(view.subject, Permission.CHANGE_SYSTEM, system).allowed


def _may_view_inputs(view: Reading, outputs: list[Object]) -> bool:
    reads = (
        select(Object)
        .join(OutputInput, OutputInput.relation_id == Object.id)
        .where(OutputInput.output_id.in_([output.id for output in outputs]))
    )
    return all(view.may_view(obj) for obj in view.session.scalars(reads))
