"""Queries of SIF-CQL at levels: the paper's own meaning functions against the platform (001 §4).

On the one side, vectors and sets (`tests.oracle.denotations`). On the other side, what is pure of
the platform: its SQL, its categories, its rule of dominance and its decisions, with the results
that the oracle of plans gives. `tests/differential` compares that oracle with Spark.
DENOTATION_CASES sets how many random queries there are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pytest

from catalog.clearance import Clearance
from catalog.conflict_class import dominated, level_of, read_level
from catalog.delivery import Delivery
from catalog.label import Label
from catalog.plan import Plan
from secadmin.languages import parse_sql
from tests.differential.message_log import (
    CLASSES,
    CLAUSES,
    COMPANIES,
    LEVELS,
    LOG,
    NOON,
    SOURCE,
    Log,
    records,
)
from tests.lanes import number_of
from tests.oracle import denotations as paper
from tests.oracle import levels as vectors
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value, microseconds

NUMBER = number_of("DENOTATION_CASES", sample=500, long=2_000)
TOGETHER = 100
_NAMES = LOG.schema.names
_SECOND = 1_000_000
# What a query of the cases selects. The time is another one in each record.
_SHOWN = ("serviceId", "sender", "timestamp")
_CHOICES: dict[str, Sequence[Value]] = {
    "serviceId": "56",
    "sender": "1B",
    "receiver": "B1A",
    "outcome": ["success", "failure"],
}


@dataclass(frozen=True, slots=True)
class Made:
    """A query in the paper's abstract syntax and in SQL, and its records with their levels."""

    query: paper.ToStream
    sql: str
    records: Sequence[tuple[tuple[Value, ...], vectors.Level]]

    @property
    def plan(self) -> Plan:
        return parse_sql(self.sql, Log()).plan

    @property
    def stream(self) -> paper.Stream:
        """The trusted stream."""
        at = _NAMES.index("timestamp")
        return frozenset((row, own, _instant(row[at])) for row, own in self.records)


def _instant(time: Value) -> int:
    assert isinstance(time, datetime)
    return microseconds(time)


def where(chance: random.Random) -> paper.Where:
    name = chance.choice([*_CHOICES])
    return paper.Where(_NAMES.index(name), chance.choice(_CHOICES[name]))


def window(chance: random.Random) -> paper.Window:
    only = where(chance) if chance.random() < 0.3 else None
    return chance.choice(
        [
            paper.Window(paper.Kind.NOW, only=only),
            paper.Window(paper.Kind.RANGE, chance.randint(1, 4) * _SECOND, only),
            paper.Window(paper.Kind.ROWS, chance.randint(1, 4), only),
        ]
    )


def query(chance: random.Random) -> paper.ToStream:
    change = chance.choice([*paper.Change])
    over: paper.Window | paper.SemiJoin = window(chance)
    if chance.random() < 0.3:
        # The platform counts equal rows by labels, and two labels can be one level. So what a
        # semi join adds and takes is compared where all its rows are given.
        change = paper.Change.RSTREAM
        mine, other = (_NAMES.index(chance.choice(["sender", "receiver"])) for _ in "ab")
        over = paper.SemiJoin(window(chance), window(chance), mine, other)
    filtered = paper.Filter(over, where(chance)) if chance.random() < 0.5 else over
    return paper.ToStream(change, filtered)


def sql_of(query: paper.ToStream) -> str:
    """The query as the platform reads it."""
    over, conditions = query.over, []
    if isinstance(over, paper.Filter):
        conditions.append(f"a.{_condition(over.where)}")
        over = over.over
    windows = [over] if isinstance(over, paper.Window) else [over.first, over.second]
    names = [LOG.name if each.only is None else f"part{at}" for at, each in enumerate(windows)]
    parts = [
        f"{name} AS (SELECT * FROM {LOG.name} WHERE {_condition(each.only)})"
        for name, each in zip(names, windows, strict=True)
        if each.only is not None
    ]
    if isinstance(over, paper.SemiJoin):
        mine, other = _NAMES[over.mine], _NAMES[over.other]
        conditions.append(
            f"EXISTS (SELECT 1 FROM {names[1]} [{_written(windows[1])}] AS b "
            f"WHERE b.{other} = a.{mine})"
        )
    before = f"WITH {', '.join(parts)} " if parts else ""
    behind = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    shown = ", ".join(f"a.{name}" for name in _SHOWN)
    source = f"{names[0]} [{_written(windows[0])}] AS a"
    return f"{before}SELECT {query.change} {shown} FROM {source}{behind}"


def _condition(where: paper.Where) -> str:
    return f"{_NAMES[where.attribute]} = '{where.value}'"


def _written(window: paper.Window) -> str:
    match window.kind:
        case paper.Kind.NOW:
            return "NOW"
        case paper.Kind.RANGE:
            return f"RANGE {window.size // _SECOND} SECONDS"
        case paper.Kind.ROWS:
            return f"ROWS {window.size}"


def made(seed: int) -> tuple[Made, random.Random]:
    chance = random.Random(seed)
    wanted = query(chance)
    return Made(wanted, sql_of(wanted), records(chance, chance.randint(3, 9))), chance


Found = frozenset[tuple[Value, ...]]


def by_the_paper(each: Made, level: vectors.Level) -> Found:
    """The instants and values of the results at a level."""
    shown = [_NAMES.index(name) for name in _SHOWN]
    elements = paper.meaning(each.query, each.stream, level)
    return frozenset((at, *(row[number] for number in shown)) for row, _, at in elements)


def label_of(level: vectors.Level) -> Label:
    return SOURCE | read_level(vectors.printed(level), CLASSES)


def clearance_of(level: vectors.Level) -> Clearance:
    """The clearance of a reader with this level."""
    return CLAUSES.cleared(Clearance(label_of(level).bits))


def at_the_level(each: Made, level: vectors.Level) -> list[Tuple]:
    """The results of the platform's query AT LEVEL, each with its label."""
    floor = read_level(vectors.printed(level), CLASSES)
    reach = dominated(SOURCE | COMPANIES, floor, CLAUSES, COMPANIES)
    table = [Tuple(values, label_of(own)) for values, own in each.records]
    found = run(each.plan.root, {LOG.name: table}, lambda _: reach)
    return [Tuple(got.values, (got.label or Label()) | floor) for got in found]


def in_the_view(each: Made, level: vectors.Level) -> list[Tuple]:
    """What a reader with the level gets of the query by semantics `view`."""
    own = Delivery(clearance_of(level))
    table = [Tuple(values, label_of(of)) for values, of in each.records]
    seen = [got for got in table if own.takes(got.label, SOURCE)]
    everything = SOURCE | COMPANIES
    found = run(each.plan.root, {LOG.name: seen}, lambda _: everything, alone=True)
    assert all(own.takes(got.label, SOURCE) for got in found)
    return found


def _found(results: Sequence[Tuple]) -> Found:
    return frozenset((_instant(each.values[0]), *each.values[1:]) for each in results)


@pytest.mark.parametrize("start", range(0, NUMBER, TOGETHER))
def test_the_platform_gives_what_the_meaning_functions_give(start: int) -> None:
    told = 0
    for seed in range(start, min(start + TOGETHER, NUMBER)):
        each, chance = made(seed)
        level, reader = chance.choice(LEVELS), chance.choice(LEVELS)
        results = at_the_level(each, level)
        assert _found(results) == by_the_paper(each, level), (seed, each.sql)
        # A single level stream: each result has the level of its query (restricted ★-property).
        shown = {level_of(got.label or Label(), CLASSES) for got in results}
        assert shown <= {vectors.printed(level)}
        for got in results:
            taken = Delivery(clearance_of(reader)).takes(got.label, SOURCE)
            assert taken == vectors.dominated(level, reader), (seed, reader)
        assert _found(in_the_view(each, reader)) == by_the_paper(each, reader), (seed, each.sql)
        told += bool(results)
    assert told > min(TOGETHER, NUMBER) // 4, "without results nothing is compared"


def test_all_operators_of_the_paper_occur() -> None:
    queries = [made(seed)[0].query for seed in range(200)]
    assert {each.change for each in queries} == {*paper.Change}
    assert {type(each.over) for each in queries} == {paper.Window, paper.Filter, paper.SemiJoin}
    windows = [each.over for each in queries if isinstance(each.over, paper.Window)]
    assert {(each.kind, each.only is None) for each in windows} == {
        (kind, plain) for kind in paper.Kind for plain in (True, False)
    }


def test_row_counts_only_what_the_level_dominates() -> None:
    """§3: the window of Qi never knows that there are other tuples."""
    rows = paper.Window(paper.Kind.ROWS, 2)
    own, other = ("1", vectors.BOTTOM), ("2", vectors.BOTTOM)
    stream = frozenset({(("a",), own, 1), (("b",), other, 2), (("c",), other, 3), (("d",), own, 4)})
    single = paper.shepherd(stream, own)
    assert paper.relation_of(rows, single, own)(4) == {(("a",), own), (("d",), own)}
    top = (vectors.T, vectors.BOTTOM)
    assert paper.relation_of(rows, stream, top)(4) == {(("c",), other), (("d",), own)}


def test_times_of_the_cases_are_whole_seconds() -> None:
    """So no tuple comes at the instant at which time takes another one away."""
    each, _ = made(1)
    assert all((at - microseconds(NOON)) % _SECOND == 0 for *_, at in each.stream)
