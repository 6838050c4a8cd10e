"""Preparing a query from its text: everything that is checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.admission import require_admissible
from catalog.analysis import analyse
from catalog.checked_plan import CheckedPlan
from catalog.errors import InvalidInput
from catalog.names import check_object_name, check_query_name, output_of
from catalog.namespace import Namespace
from catalog.permission import Permission
from catalog.placement import Placement
from catalog.plan import Emission, Moving, Plan, sources, walk
from catalog.upserts import upsert_keys
from catalog.view_plan import through_views
from secadmin.control import declared
from secadmin.control.allowed_operators import require_operators
from secadmin.control.lost_results import warnings_about
from secadmin.control.one_window import require_one_window_below
from secadmin.control.platform import Platform
from secadmin.control.query_choices import QueryChoices, choices_of
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.query_rights import level_of_query, roles_to_see_as
from secadmin.control.user_queries import user_query_sql
from secadmin.control.visible_relations import VisibleRelations
from secadmin.control.work import Reading
from secadmin.languages import parse_borealis, parse_sql

_REVEALED = (
    "a window OF ALL lets subscribers learn how many tuples come that they may not see, and when; "
    "leave OF ALL out to hide this"
)


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query that may be added: its outputs' plans over what the caller's roles see, and notes.

    `relations` are those that its text names. They have the level at which the query runs.
    """

    checked: Mapping[str, CheckedPlan]
    notes: tuple[str, ...]
    relations: VisibleRelations
    choices: QueryChoices

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plan of each output."""
        return {name: each.plan for name, each in self.checked.items()}


def prepare(platform: Platform, view: Reading, wanted: QueryDefinition) -> PreparedQuery:
    """Parse and check a query for the caller. Nothing is written.

    Raises InvalidInput with a position, Denied, NotFound, and Conflict for a name that is taken.
    """
    check_query_name(wanted.name)
    view.require_system(Permission.ADD_QUERY)
    choices = choices_of(wanted)
    relations = VisibleRelations(view, roles_to_see_as(view, choices.roles))
    written, notes = _parse(relations, wanted)
    told = _told(relations, written, accept_empty=wanted.accept_empty)
    checked = _merged(platform, relations, choices.placement, written)
    if any(_has_window_of_all(each.plan) for each in checked.values()):
        told = (*told, _REVEALED)
    prepared = PreparedQuery(checked, (*notes, *told), relations, choices)
    view.require_free(Namespace.QUERY, wanted.name)
    for name in checked:
        view.require_free(Namespace.RELATION, check_object_name(name))
    declared.require_aggregates(view, prepared.plans.values())
    relations.level = level_of_query(view, choices.level, prepared.plans.values())
    return prepared


def prepare_again(
    platform: Platform, view: Reading, wanted: QueryDefinition, as_roles: frozenset[int] | None
) -> PreparedQuery:
    """Merge a query that was added before with what its owner's roles see now (002 §3.3).

    `view` has its owner with the query's roles as subject. Nothing is written. Raises as `prepare`,
    but not if the query gets nothing any more.
    """
    choices = choices_of(wanted)
    relations = VisibleRelations(view, as_roles)
    written, notes = _parse(relations, wanted)
    checked = _merged(platform, relations, choices.placement, written)
    prepared = PreparedQuery(checked, notes, relations, choices)
    declared.require_aggregates(view, prepared.plans.values())
    return prepared


def _require_no_window_views(relations: VisibleRelations) -> None:
    """Raise InvalidInput if policies show a stream only in windows.

    A class that is opened later sees its first window in part. It would show few tuples.
    """
    names = sorted(relations.viewed[each].stream.name for each in relations.in_windows)
    if names:
        raise InvalidInput(
            f"policies show {', '.join(names)} only in windows, and with semantics view, isolated "
            "or exact the first window of a class begins in the middle; use strong semantics"
        )


def _require_appends(plan: Plan) -> None:
    """Raise InvalidInput for a plan whose results replace earlier ones.

    Each role of a subscriber has results of its own, so those of one role would replace those of
    another one.
    """
    if plan.emission is Emission.UPDATES or upsert_keys(plan):
        raise InvalidInput(
            "with semantics exact no result may replace another one, because each role of a "
            "subscriber has results of its own: leave EMIT UPDATES out, and take the changes of a "
            "relation with ISTREAM; or use semantics view"
        )


def _has_window_of_all(plan: Plan) -> bool:
    return any(isinstance(node, Moving) and node.window.of_all for node in walk(plan.root))


def _require_sizes(plan: Plan, placement: Placement) -> None:
    """Raise InvalidInput for a window OF ALL where no class has a part of it."""
    if not _has_window_of_all(plan):
        return
    if placement is Placement.SINK:
        raise InvalidInput(
            "with semantics strong each window has one size for all tuples: leave OF ALL out, or "
            "use semantics view or exact"
        )
    if placement is Placement.APART:
        raise InvalidInput(
            "with semantics isolated a query reads no tuple that its class may not see, so it "
            "cannot count them: leave OF ALL out, or use semantics view or exact"
        )


def _parse(
    relations: VisibleRelations, wanted: QueryDefinition
) -> tuple[dict[str, CheckedPlan], tuple[str, ...]]:
    """The plans of the query's outputs as they are written, and notes on the text."""
    notes: tuple[str, ...] = ()
    if wanted.language != "borealis":
        name = wanted.output or output_of(wanted.name)
        plans = {name: _read(relations, wanted, name)}
    else:
        if wanted.output is not None:
            raise InvalidInput("a Borealis diagram names its outputs itself; leave `output` out")
        diagram = parse_borealis(wanted.text, relations)
        plans, notes = dict(diagram.outputs), diagram.notes
    relations.view.detail["reads"] = sorted(relations.named)
    _require_one_window_below(relations, plans)
    require_operators(relations.view, (each.plan for each in plans.values()))
    return plans, notes


def _told(
    relations: VisibleRelations, written: Mapping[str, CheckedPlan], *, accept_empty: bool
) -> tuple[str, ...]:
    """Which streams are read through policies, and what the query loses by them."""
    viewed = sorted(each.stream.name for each in relations.viewed.values())
    plans = [each.plan for each in written.values()]
    lost = warnings_about(plans, relations.viewed, accept_empty=accept_empty) if viewed else ()
    told = (f"{name} is read as the policies of your roles show it" for name in viewed)
    return (*told, *lost)


def _merged(
    platform: Platform,
    relations: VisibleRelations,
    placement: Placement,
    written: Mapping[str, CheckedPlan],
) -> dict[str, CheckedPlan]:
    """The plans over what the roles see of the streams (002 §3.1). They are admissible."""
    checked = dict(written)
    if relations.viewed:
        viewed = (each.stream.name for each in relations.viewed.values())
        relations.view.detail["through policies"] = sorted(viewed)
        checked = {
            name: analyse(through_views(each.plan, relations.viewed))
            for name, each in written.items()
        }
    if not all(placement.has_common_results(each.plan) for each in checked.values()):
        _require_no_window_views(relations)
        checked = {name: declared.undeclared(each) for name, each in checked.items()}
    for each in checked.values():
        require_admissible(each, platform.limits)
        _require_sizes(each.plan, placement)
        if placement.has_views_of_roles(each.plan):
            _require_appends(each.plan)
    return checked


def _read(relations: VisibleRelations, wanted: QueryDefinition, name: str) -> CheckedPlan:
    if wanted.language == "sql":
        return parse_sql(wanted.text, relations, name)
    text = user_query_sql(wanted.text, relations.relation)
    try:
        return parse_sql(text, relations, name)
    except InvalidInput as error:
        # The position would be one in a text that the user has not written.
        raise InvalidInput(error.detail) from None


def _require_one_window_below(
    relations: VisibleRelations, plans: Mapping[str, CheckedPlan]
) -> None:
    roles = relations.view.subject.role_ids
    for each in plans.values():
        read = sources(each.plan)
        own = relations.in_windows & {relation.object_id for relation in read}
        require_one_window_below(relations.views, roles, read, own)
