"""A case: a plan, the records of its relations, and the classes that its results go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Plan
from catalog.relation import Relation
from tests.oracle.values import Tuple, Value


@dataclass(frozen=True, slots=True)
class Record:
    """A tuple as it stands in a labelled topic; `label` is the header's text, None: no header."""

    values: tuple[Value, ...]
    label: str | None

    def tuple(self) -> Tuple:
        """The tuple as the oracle takes it."""
        return Tuple(self.values, Label.from_wire(self.label))


@dataclass(frozen=True, slots=True)
class Class:
    """Who gets results, and whether weakly; a difference class gets none that `beyond` gets."""

    clearance: Clearance
    weak: bool = False
    beyond: Clearance | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What runs on both sides.

    `records` are by relation name. `reaches` says what tuples can carry, by the relation's id.
    `sources` are the categories of the kind "source stream", for weak delivery.
    """

    name: str
    plan: Plan
    records: Mapping[str, Sequence[Record]]
    reaches: Mapping[int, Label]
    classes: tuple[Class, ...] = field(default=())
    sources: Label = field(default=Label())

    def reach_of(self, relation: Relation) -> Label:
        """What a tuple of the relation can carry."""
        return self.reaches[relation.object_id]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results, with their labels, and what each class gets, in the order of the classes."""

    results: list[Tuple]
    delivered: tuple[list[Tuple], ...]
