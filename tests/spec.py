"""The examples of catalog/SPEC.md, read as cases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from catalog import plan as plans
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation
from catalog.schema import AttributeType, Schema, Type
from tests.differential.case import Case, Class, Record, viewed
from tests.differential.market import (
    COMPANY,
    DECLARED,
    EU,
    QUOTES,
    REACHES,
    SOURCES,
    TRADES,
    TRADES_AGGREGATED,
    Market,
)
from tests.oracle.nested_values import from_json
from tests.oracle.values import Tuple, Value

SPEC = Path(plans.__file__).parent / "SPEC.md"
_CATEGORIES = {
    "trades": TRADES,
    "eu": EU,
    "quotes": QUOTES,
    "company": COMPANY,
    "trades-k": TRADES_AGGREGATED,
}
_DECLARED = replace(DECLARED, object_id=5, name="trades-declared")
# The independent senders, and the number of the user of each.
_SENDERS = {1: 0, 2: 7, 3: 63}
_DAY = "2026-01-31 "
_SECTION = re.compile(r"^## (\w+)$", re.MULTILINE)
_RULE = re.compile(r"^- \*\*(\w+\.\d+)\*\*", re.MULTILINE)
_EXAMPLE = re.compile(r"^Example \(([^)]*)\)(, refused)?: `([^`]*)`$", re.MULTILINE)
_CLASS = re.compile(r"(strong|weak) to (.*?)(?: beyond (.*))?")
_VIEW = re.compile(r"(view) to (.*)()")
_EXACT = re.compile(r"(exact) to (.*)()")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an example: what its first cell names, the other names, and the rows."""

    of: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A query with its tables, the rules that it shows, and the section that it is in."""

    section: str
    rules: tuple[str, ...]
    refused: bool
    sql: str
    tables: tuple[Table, ...]
    # The number of each category that the tables name.
    categories: Mapping[str, int] = field(default_factory=lambda: _CATEGORIES)

    @property
    def name(self) -> str:
        """The rules and the start of the query: no two examples have the same."""
        return f"{', '.join(self.rules)}: {self.sql}"

    def case(self, plan: plans.Plan) -> Case:
        """Its plan over all its records, for the classes that its tables name."""
        kept = {relation.name: self.records(relation) for relation in plans.sources(plan)}
        classes = tuple(given for given, _ in self.delivered())
        reaches = {**REACHES, _DECLARED.object_id: REACHES[DECLARED.object_id]}
        independent = {_DECLARED.object_id: _SENDERS}
        return Case(self.name, plan, kept, reaches, classes, SOURCES, independent)

    def records(self, relation: Relation, *, later: bool | None = None) -> list[Record]:
        """The records of a relation: all, or only the first or only the later ones."""
        names = {relation.name: False, f"{relation.name}, later": True}
        tables = [each for each in self.tables if each.of in names]
        wanted = [each for each in tables if later is None or names[each.of] == later]
        return [self._record(each, row, relation.schema) for each in wanted for row in each.rows]

    def results(self, schema: Schema) -> list[Tuple]:
        """What the example says that the query gives."""
        [table] = [each for each in self.tables if each.of == "result"]
        return self.read_delivered(table, schema)

    def delivered(self) -> list[tuple[Class, Table]]:
        """The classes that the example names, each with the table of what it gets."""
        return self._classes(_CLASS)

    def viewed(self) -> list[tuple[Class, Table]]:
        """The classes with views of their own, each with the table of what it gets."""
        return self._classes(_VIEW)

    def exact(self) -> list[tuple[Class, Table]]:
        """The classes by exact match, each with the table of what it gets."""
        return self._classes(_EXACT)

    def _classes(self, named: re.Pattern[str]) -> list[tuple[Class, Table]]:
        found = [(named.fullmatch(each.of), each) for each in self.tables]
        return [(self._class(match), each) for match, each in found if match is not None]

    def view_case(self, plan: plans.Plan) -> Case:
        """As `case`, for the classes with views of their own."""
        classes = tuple(given for given, _ in self.viewed())
        return viewed(replace(self.case(plan), classes=classes))

    def exact_case(self, plan: plans.Plan) -> Case:
        """As `case`, for the classes by exact match."""
        classes = tuple(given for given, _ in self.exact())
        name = f"{self.name}, exact"
        return replace(self.case(plan), name=name, classes=classes, exact=True)

    def read_delivered(self, table: Table, schema: Schema) -> list[Tuple]:
        """What the example says that a class gets."""
        return [
            Tuple(_values(table.columns, row[:-1], schema), self._label(row[-1]))
            for row in table.rows
        ]

    def _record(self, table: Table, row: Sequence[str], schema: Schema) -> Record:
        cells = dict(zip(table.columns, row[:-1], strict=True))
        sender = "NULL" if "sender" in schema.names else cells.pop("sender", "NULL")
        values = _values([*cells], [*cells.values()], schema)
        label = self._label(row[-1]).to_wire()
        return Record(values, label, sender=None if sender == "NULL" else int(sender))

    def _label(self, text: str) -> Label:
        return Label.of(*self._held(text))

    def _held(self, text: str) -> list[int]:
        return [] if text == "none" else [self.categories[name] for name in text.split(", ")]

    def _class(self, match: re.Match[str]) -> Class:
        how, held, beyond = match.groups()
        served = None if not beyond else Clearance.of(*self._held(beyond))
        if how == "exact":
            ways = tuple(Clearance.of(*self._held(way)) for way in held.split(" or "))
            together = Clearance.of(*(at for way in held.split(" or ") for at in self._held(way)))
            return Class(together, ways=ways)
        return Class(Clearance.of(*self._held(held)), how == "weak", served)


class SpecMarket(Market):
    """The market, and its trades with a declared aggregate."""

    def relation(self, name: str) -> Relation:
        """As in the market."""
        return _DECLARED if name == _DECLARED.name else super().relation(name)


def sections() -> Mapping[str, str]:
    """The text of each section, by its name."""
    return _sections(SPEC.read_text("utf-8"))


def _sections(page: str) -> Mapping[str, str]:
    _, *parts = _SECTION.split(page)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def rules(section: str) -> list[str]:
    """The rules that a section's text defines."""
    return _RULE.findall(section)


@cache
def examples() -> Sequence[Example]:
    """All examples of the page."""
    return examples_of(SPEC.read_text("utf-8"), _CATEGORIES)


def examples_of(page: str, categories: Mapping[str, int]) -> Sequence[Example]:
    """All examples of a page in the form of SPEC.md. `categories` has the number of each one."""
    found = []
    for name, text in _sections(page).items():
        _, *parts = _EXAMPLE.split(text)
        for shown, refused, sql, below in zip(*(parts[at::4] for at in range(4)), strict=True):
            tables = tuple(_tables(below))
            named = tuple(shown.split(", "))
            found.append(Example(name, named, bool(refused), sql, tables, categories))
    return found


def _tables(text: str) -> list[Table]:
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    tables = []
    for block in blocks:
        head, _, *rows = (
            [cell.strip() for cell in line[1:-1].split("|")] for line in block.split("\n") if line
        )
        of, _, first = head[0].rpartition(": ")
        tables.append(Table(of, (first, *head[1:-1]), tuple(map(tuple, rows))))
    return tables


def _values(columns: Sequence[str], row: Sequence[str], schema: Schema) -> tuple[Value, ...]:
    given = dict(zip(columns, row, strict=True))
    unknown = given.keys() - set(schema.names)
    assert not unknown, f"no attributes: {unknown}"
    return tuple(_value(given.get(each.name, "NULL"), each.type) for each in schema.attributes)


def _value(text: str, kind: AttributeType) -> Value:
    if text == "NULL":
        return None
    if not isinstance(kind, Type):
        return from_json(json.loads(text), kind)
    match kind:
        case Type.TIMESTAMP:
            return datetime.fromisoformat(_DAY + text)
        case Type.BIGINT:
            return int(text)
        case Type.DOUBLE:
            return float(text)
        case Type.BOOLEAN:
            return {"TRUE": True, "FALSE": False}[text]
        case Type.STRING:
            return text
