"""A case: a plan, the records of its relations, and the classes that its results go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from catalog.clearance import Clearance
from catalog.conflict_class import ConflictClass
from catalog.label import Label
from catalog.plan import Plan, Source, at_sources
from catalog.relation import Relation
from tests.oracle.values import Tuple, Value


@dataclass(frozen=True, slots=True)
class Record:
    """A tuple as it is in a labelled topic; `label` is the header's text, None: no header.

    `sender` is the id of its sender, None: it has none. `origin` is the record's key, None: it has
    none.
    """

    values: tuple[Value, ...]
    label: str | None
    sender: int | None = None
    origin: str | None = None

    def tuple(self, users: Mapping[int, int]) -> Tuple:
        """The tuple as the oracle takes it. `users` has the user of each independent sender."""
        user = None if self.sender is None else users.get(self.sender)
        return Tuple(self.values, Label.from_wire(self.label), user)


@dataclass(frozen=True, slots=True)
class Class:
    """Who gets results, and whether weakly; a difference class gets none that `beyond` gets.

    With `ways`, one of these covers a result alone.
    """

    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None
    ways: tuple[Clearance, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What runs on both sides, for all classes together, or with `view` for each by itself.

    With `exact`, what each role of a class sees is merged. A class without ways has one role.

    `records` are by relation name. `reaches` says what tuples can carry, by the relation's id.
    `sources` are the categories of the kind "source stream", for weak delivery. `independent` are
    the independent senders of each relation, by its id: the number of each one's user.
    `conflict_classes` are those whose levels the plan shows, and `floor` is the level at which it
    runs.
    """

    name: str
    plan: Plan
    records: Mapping[str, Sequence[Record]]
    reaches: Mapping[int, Label]
    classes: tuple[Class, ...] = field(default=())
    sources: Label = field(default=Label())
    independent: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    conflict_classes: tuple[ConflictClass, ...] = ()
    floor: Label = field(default=Label())
    view: bool = False
    exact: bool = False

    def reach_of(self, relation: Relation) -> Label:
        """What a tuple of the relation can carry."""
        return self.reaches[relation.object_id]

    def users_of(self, relation: Relation) -> Mapping[int, int]:
        """The number of the user of each independent sender of the relation."""
        return self.independent.get(relation.object_id, {})


def viewed(case: Case) -> Case:
    """The case with a view for each of its classes, which are whole. `view` lowers no label."""
    classes = tuple(Class(each.clearance) for each in case.classes)
    plan = at_sources(case.plan, _undeclared)
    return replace(case, name=f"{case.name}, view", plan=plan, classes=classes, view=True)


def exactly(case: Case) -> Case:
    """The case by exact match: each two classes that follow each other are the roles of one."""
    alone = [each.clearance for each in case.classes]
    pairs = [(one, two) for one, two in pairwise(alone) if one != two]
    classes = [Class(Clearance(one.bits | two.bits), ways=(one, two)) for one, two in pairs]
    classes += [Class(each) for each in alone[:1]]
    plan = at_sources(case.plan, _undeclared)
    return replace(case, name=f"{case.name}, exact", plan=plan, classes=tuple(classes), exact=True)


def _undeclared(source: Source) -> Source:
    return replace(source, relation=replace(source.relation, declared=None))


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results, with their labels, and what each class gets, in the order of the classes."""

    results: list[Tuple]
    delivered: tuple[list[Tuple], ...]
