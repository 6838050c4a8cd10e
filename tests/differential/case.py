"""A case: a plan, the records of its relations, and the classes that its results go to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Plan
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
    """What runs on both sides. `records` are by relation name; `sources` are the categories of the
    kind "source stream", which weak delivery treats differently."""

    name: str
    plan: Plan
    records: Mapping[str, Sequence[Record]]
    classes: tuple[Class, ...] = field(default=())
    sources: Label = field(default=Label())


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results, with their labels, and what each class gets, in the order of the classes."""

    results: list[Tuple]
    delivered: tuple[list[Tuple], ...]
