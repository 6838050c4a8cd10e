"""Queries: adding, starting, stopping and removing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import select

from catalog.assignments import parked
from catalog.errors import InvalidInput
from catalog.executions import executions_of, leave
from catalog.models import DeliveryClass, Object, OutputRow, QueryRow, Role
from catalog.names import check_query_name
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.query_roles import chosen_roles
from catalog.schema import Schema
from catalog.stored_form import from_stored
from catalog.topics import lab_topic
from secadmin.control import declared, streams
from secadmin.control.allowed_operators import require_operators, require_still_allowed
from secadmin.control.changed_views import note_if_changed
from secadmin.control.new_topics import new_topics
from secadmin.control.platform import Platform
from secadmin.control.prepared_query import PreparedQuery, prepare
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.query_rights import level_of_query, roles_to_see_as
from secadmin.control.query_room import ends_of_sources, require_engines, require_room
from secadmin.control.query_views import outputs_of
from secadmin.control.room import require_room_to_run
from secadmin.control.settlement import of_objects
from secadmin.control.shared_executions import assign_again, begin_there, beginnings
from secadmin.control.stored_outputs import Beginning, store_outputs
from secadmin.control.visible_relations import VisibleRelations
from secadmin.control.work import Caller, Work, carry_out, changing, reading, working


@dataclass(frozen=True, slots=True)
class AddedQuery:
    """The outputs of a new query with their schemas, and notes on its text.

    The notes say what the text has and the platform does not use, and which streams are read
    through policies.
    """

    outputs: Mapping[str, Schema]
    notes: tuple[str, ...]


def add_query(platform: Platform, caller: Caller, wanted: QueryDefinition) -> AddedQuery:
    """Add a query and start it.

    Needs ADD QUERY, VIEW OBJECT on each stream that it reads and on its schema, and SUBSCRIBE on
    each output that it reads. The caller owns the query and its outputs. The query reads of each
    stream what the policies of the caller's roles show (paper 002, section 3.1). Raises
    InvalidInput with a position, Denied if the views of the roles do not add up or none of them
    allows an operator (004 §5.4), and Conflict if the engines are full.
    """
    check_query_name(wanted.name)
    target = f"query {wanted.name}"
    # All is checked before topics are made, so that no refused call makes topics.
    with reading(platform, caller, "prepare query", target) as view:
        prepared = prepare(platform, view, wanted)
        require_room(platform, view, prepared)
    offsets = ends_of_sources(platform, prepared)
    with reading(platform, caller, "check room for query", target) as view:
        require_engines(platform, view.session, prepared, offsets)

    def create() -> None:
        for name in prepared.plans:
            platform.kafka.create_output_topics(name)

    with (
        new_topics(platform, [lab_topic(name) for name in prepared.plans], create),
        changing(platform, caller, "add query", target) as work,
    ):
        relations = _checked_again(work, prepared)
        _store(platform, work, wanted, prepared, offsets, relations)
    carry_out(platform, work)
    schemas = {name: each.schema for name, each in prepared.checked.items()}
    return AddedQuery(schemas, prepared.notes)


def _checked_again(work: Work, prepared: PreparedQuery) -> VisibleRelations:
    """Check all rights again: a relation may be hidden or gone by now.

    The text is not parsed again: it may be long, and no other call can change anything in the
    meantime.
    """
    plans, relations = prepared.plans.values(), prepared.relations
    work.require_system(Permission.ADD_QUERY)
    again = VisibleRelations(work, roles_to_see_as(work, prepared.choices.roles))
    for name in relations.named:
        again.relation(name)
    if (again.named, again.viewed) != (relations.named, relations.viewed):
        raise InvalidInput("what the query reads has changed meanwhile; add it again")
    work.detail["reads"] = sorted(relations.named)
    require_operators(work, plans)
    declared.require_aggregates(work, plans)
    again.level = level_of_query(work, prepared.choices.level, plans)
    return again


def _store(
    platform: Platform,
    work: Work,
    wanted: QueryDefinition,
    prepared: PreparedQuery,
    offsets: Mapping[str, Mapping[str, int]],
    relations: VisibleRelations,
) -> None:
    checked, plans, placement = prepared.checked, prepared.plans, prepared.choices.placement
    work.require_free(Namespace.QUERY, wanted.name)
    require_room(platform, work, prepared)
    query = _new_object(platform, work, ObjectKind.QUERY, Namespace.QUERY, wanted.name)
    active = select(Role).where(Role.id.in_(work.subject.active_role_ids))
    chosen = select(Role).where(Role.id.in_(relations.as_roles or ()))
    work.session.add(
        QueryRow(
            object_id=query.id,
            language=wanted.language,
            text=wanted.text,
            running=True,
            narrowed=relations.as_roles is not None,
            roles=list(work.session.scalars(active)),
            as_roles=list(work.session.scalars(chosen)),
        )
    )
    for name in checked:
        work.require_free(Namespace.RELATION, name)
    outputs = {
        _new_object(platform, work, ObjectKind.OUTPUT, Namespace.RELATION, name): each
        for name, each in checked.items()
    }
    begin = Beginning(relations, placement, offsets, query.created_at)
    store_outputs(platform, work.session, query.id, outputs, begin)
    work.detail["outputs"] = sorted(plans)
    if placement is not Placement.SINK:
        work.detail["semantics"] = placement.semantics
    work.change.bump_generation()


def _new_object(
    platform: Platform, work: Work, kind: ObjectKind, namespace: Namespace, name: str
) -> Object:
    obj = Object(
        kind=kind,
        namespace=namespace,
        name=name,
        owner_id=work.subject.user_id,
        created_at=platform.clock(),
    )
    work.session.add(obj)
    work.session.flush()
    return obj


def set_running(platform: Platform, caller: Caller, name: str, running: bool) -> None:
    """Start or stop a query. A started query goes on where it stopped. Needs SET QUERY STATUS.

    A start also tries a parked query again. If policies have changed what the query may read, it is
    merged anew with what they show, and begins at its start.

    Raises Conflict if the engine is full, and Denied if its owner's roles do not allow its
    operators any more.
    """
    action = "start query" if running else "stop query"
    found = beginnings(platform, caller, name) if running else {}
    with working(platform, caller, action, f"query {name}") as work:
        query = work.find(ObjectKind.QUERY, name)
        work.require(Permission.SET_QUERY_STATUS, query)
        row = work.session.get_one(QueryRow, query.id)
        outputs = [output.id for output in outputs_of(work, query)]
        if running:
            begin_there(work.session, outputs, found)
            noted = note_if_changed(work.session, row, work.change.now)
            work.settlement.settle(of_objects(*noted))
        if running and not row.running:
            rows = select(OutputRow.plan).where(OutputRow.object_id.in_(outputs))
            plans = [from_stored(Plan, data) for data in work.session.scalars(rows)]
            require_still_allowed(work, query, plans)
            require_room_to_run(platform.user_limits, work.session, query.owner_id, plans)
        executions = executions_of(work.session, outputs)
        if running and (not row.running or parked(work.session).keys() & executions):
            assign_again(platform, work.session, executions, chosen_roles(row))
        if not running and row.running:
            leave(work.session, outputs, work.change.now)
        # If somebody else stopped the query, the reason stays until the query is started.
        row.running, row.stopped_because = running, "" if running else row.stopped_because
        work.change.bump_generation()


def remove_query(platform: Platform, caller: Caller, name: str) -> None:
    """Remove a query and its outputs. Subscriptions end, fenced. Needs CHANGE PERM on the query."""
    with working(platform, caller, "remove query", f"query {name}") as work:
        query = work.find(ObjectKind.QUERY, name)
        work.require(Permission.CHANGE_PERM, query)
        remove(platform, work, query)


def remove(platform: Platform, work: Work, query: Object) -> list[int]:
    """Remove the query and its outputs, without a check of rights. Gives the outputs' ids.

    Raises Conflict, with the ids of the executions that block it, while other queries read an
    output.
    """
    outputs = outputs_of(work, query)
    ids = [output.id for output in outputs]
    for output in outputs:
        streams.require_unread(work, output, besides=frozenset(ids))
        output.removed_at = platform.clock()
    query.removed_at = query.gone_at = platform.clock()
    classes = select(DeliveryClass).where(DeliveryClass.output_id.in_(ids))
    for delivery_class in work.session.scalars(classes):
        delivery_class.closed_at = delivery_class.closed_at or platform.clock()
    work.session.flush()
    work.settlement.settle(of_objects(*ids))
    work.change.bump_generation()
    return ids


def stop_for(work: Work, queries: Iterable[QueryRow], reason: str) -> list[int]:
    """Stop queries, without a check of rights. Users that may view them see `reason`.

    Gives the ids of their outputs. Queries that had already stopped are left out.
    """
    stopped: list[int] = []
    for row in queries:
        if row.running:
            row.running, row.stopped_because = False, reason
            query = work.session.get_one(Object, row.object_id)
            stopped += [output.id for output in outputs_of(work, query)]
    leave(work.session, stopped, work.change.now)
    if stopped:
        work.change.bump_generation()
    work.detail["stopped"] = sorted(stopped)
    return sorted(stopped)
