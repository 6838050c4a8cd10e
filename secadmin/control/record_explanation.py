"""Explains why a user gets a record of an output, or does not get it: by the label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.authorizer import Authorizer
from catalog.categories import role_clauses, source_categories
from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.errors import InvalidInput
from catalog.floors import withheld_from
from catalog.label import Label, combine
from catalog.models import (
    Object,
    OutputRow,
    QueryRow,
)
from catalog.permission import ObjectKind, Permission
from catalog.placement import Placement
from catalog.query_roles import counting_roles
from catalog.reaches import Reaches
from catalog.relation import Relation
from catalog.role_views import RoleViews
from catalog.roles import juniors_of
from catalog.stored_form import from_stored
from catalog.subject import Subject, subject_of_user
from secadmin.control.category_words import category_words
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, Reading, reading

MAX_CATEGORIES = 1_000


@dataclass(frozen=True, slots=True)
class CategoryWords:
    """A category of the label in words, what gives it, and whether the user has it."""

    means: str
    given_by: str
    held: bool


@dataclass(frozen=True, slots=True)
class RecordExplanation:
    """Whether the user may get a record with this label, if all its roles are active.

    `obstacles` are reasons against it that do not depend on the label.
    """

    visible: bool
    weak: bool
    categories: tuple[CategoryWords, ...]
    obstacles: tuple[str, ...]


def explain_record(
    platform: Platform, caller: Caller, output: str, user: str, label: str
) -> RecordExplanation:
    """Explain who gets a record with this label, which is the header `label` as it was delivered.

    Needs CHANGE SYSTEM, and VIEW OBJECT on the output. A stream that the caller may not view has no
    name in the answer. Raises InvalidInput for a text that is no label.
    """
    target = f"output {output}: {user}"
    with reading(platform, caller, "explain record", target) as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        obj = view.find(ObjectKind.OUTPUT, output)
        read = Label.from_wire(label)
        if read is None:
            raise InvalidInput(
                "that is no label; give the value of a record's header `label`, such as 2,64"
            )
        if len(read.categories()) > MAX_CATEGORIES:
            raise InvalidInput(f"a label with more than {MAX_CATEGORIES} categories is too large")
        subject = subject_of_user(view.session, view.user(user))
        row = view.session.get_one(OutputRow, obj.id)
        obstacles = tuple(_obstacles(view, subject, obj, row, read))
        return _explained(view, _by_role(view, subject, row), row, read, obstacles)


def _by_role(view: Reading, subject: Subject, row: OutputRow) -> Subject:
    """The subject with the roles that count for the output (000 §4.1)."""
    query = view.session.get_one(QueryRow, row.query_id)
    counted = counting_roles(view.session, query)
    return subject if counted is None else replace(subject, role_ids=subject.role_ids & counted)


def _obstacles(
    view: Reading, subject: Subject, obj: Object, row: OutputRow, label: Label
) -> Iterator[str]:
    if subject.barred is not None:
        yield subject.barred
    authorizer = Authorizer(view.session)
    for permission in (Permission.VIEW_OBJECT, Permission.SUBSCRIBE):
        if not authorizer.decide(subject, permission, obj).allowed:
            yield f"no role of the user holds {permission} on the output"
    if not RoleViews(view.session).cover_output(subject.role_ids, obj.id):
        yield "policies of the user's roles hide a part of what the output shows"
    withheld = withheld_from(view.session, [subject.user_id]).get(subject.user_id)
    if withheld is not None and row.weak:
        yield "the user has a floor in a stream, so it gets no weak delivery"
    asked = role_clauses(view.session).deciding(label)
    if withheld is not None and withheld.bits & asked.bits:
        yield "a right waits until ingest adds it to the floor of what the user sends"


def _explained(
    view: Reading, subject: Subject, row: OutputRow, label: Label, obstacles: tuple[str, ...]
) -> RecordExplanation:
    reaches = Reaches(view.session)
    reach = reaches.of(from_stored(Relation, row.relation))
    deciding = reaches.clauses.deciding(reach | label)
    rights = Authorizer(view.session).clearance_of(subject, deciding)
    clearance = reaches.clauses.cleared(rights)
    categories = tuple(
        CategoryWords(means, given_by, bool(clearance.bits >> bit & 1))
        for bit in label.categories()
        for means, given_by in [category_words(view, bit)]
    )
    sources = combine(source_categories(view.session).values())
    ways: list[Clearance] = []
    if row.placement == Placement.ROLES:
        for roles in juniors_of(view.session, subject.active_role_ids).values():
            alone = replace(subject, role_ids=roles & subject.role_ids)
            rights = Authorizer(view.session).clearance_of(alone, deciding)
            ways.append(reaches.clauses.cleared(rights))
    covered = Delivery(clearance, row.weak, ways=tuple(ways)).takes(label, sources)
    return RecordExplanation(covered and not obstacles, row.weak, categories, obstacles)
