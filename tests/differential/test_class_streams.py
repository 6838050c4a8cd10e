"""Semantics `view` and `isolated` batch by batch: no class learns of what is hidden from it.

NON_INTERFERENCE_CASES sets how many pairs of inputs are compared for each query.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import Row, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import apart
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record
from tests.differential.delivered import header, run_of
from tests.differential.market import COMPANY, NOON, QUOTES, TRADES, Market, case_of
from tests.differential.streaming import run_batch
from tests.lanes import is_long, number_of
from tests.oracle.values import Value
from tests.outputs import with_output

_NUMBER = number_of("NON_INTERFERENCE_CASES", sample=1, long=20)
_NOON_MS = 1_769_860_800_000
_LATER_MS = 3_600_000
QUERIES = {
    "windows": "SELECT window_start, symbol, count(*) AS n, sum(volume) AS total FROM trades "
    "GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE), symbol",
    "distinct": "SELECT window_start, count(DISTINCT volume) AS many FROM trades "
    "GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
    "join of windows": "SELECT a.window_end AS until, a.symbol, a.n, m.most FROM (SELECT "
    "window_end, symbol, count(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '20' SECOND), "
    "symbol) AS a "
    "LEFT JOIN (SELECT window_end, max(volume) AS most FROM trades GROUP BY TUMBLE(ts, INTERVAL "
    "'20' SECOND)) AS m ON a.window_end = m.window_end AND a.n < m.most",
    "first ones of windows": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
    "window_start ORDER BY total DESC) AS rn FROM (SELECT window_start, window_end, symbol, "
    "sum(volume) AS total FROM trades GROUP BY TUMBLE(ts, INTERVAL '20' SECOND), symbol) AS w) "
    "AS t WHERE rn <= 1",
    "rows": "SELECT ISTREAM symbol, count(*) AS n, sum(volume) AS total FROM trades [ROWS 3] "
    "GROUP BY symbol",
    "anti": "SELECT ISTREAM symbol, volume FROM trades [RANGE 10 SECONDS] AS t WHERE NOT EXISTS "
    "(SELECT 1 FROM quotes [ROWS 2] AS q WHERE q.symbol = t.symbol)",
    "pattern": "SELECT match_time, low, many FROM trades MATCH_RECOGNIZE (PARTITION BY symbol "
    "ORDER BY ts MEASURES A.volume AS low, COUNT(*) AS many AFTER MATCH SKIP PAST LAST ROW "
    "PATTERN (A B+ C) WITHIN INTERVAL '1' MINUTE DEFINE B AS volume > 3, C AS volume <= 3)",
}
_ALL = (TRADES, COMPANY, QUOTES)
CLASSES = (Class(Clearance.of(TRADES, QUOTES)), Class(Clearance.of(*_ALL)))


class Timed(Market):
    """The market with the broker's time."""

    def relation(self, name: str) -> Relation:
        return replace(super().relation(name), time=TimeSource.BROKER)


def case(name: str) -> Case:
    """The query over streams whose time the broker gives."""
    made = case_of(name, parse_sql(QUERIES[name], Timed()), CLASSES)
    return replace(made, records=dict.fromkeys(made.records, ()), view=True)


def trades(chance: Random, count: int, sender: int, label: Label) -> list[Record]:
    """Records of one sender, in the order of its offsets. Several have one time."""
    made = []
    for offset in range(count):
        time = NOON + timedelta(seconds=chance.randint(0, 100))
        values: tuple[Value, ...] = (time, chance.choice("ab"), 1.0, chance.randint(1, 5))
        made.append(Record(values, label.to_wire(), sender, f"{sender}:0:{offset}"))
    return made


def quotes(chance: Random, count: int) -> list[Record]:
    made = []
    for offset in range(count):
        time = NOON + timedelta(seconds=chance.randint(0, 100))
        values: tuple[Value, ...] = (time, chance.choice("abc"), 1.0, True)
        made.append(Record(values, Label.of(QUOTES).to_wire(), 7, f"7:0:{offset}"))
    return made


@dataclass(frozen=True, slots=True)
class _Delivered:
    """A record as its reader sees it."""

    value: str
    headers: tuple[tuple[str, bytes], ...]


def topic(rows: Sequence[Row], name: str) -> list[_Delivered]:
    """The records of a topic, in their order."""
    return [
        _Delivered(row["value"], tuple((h["key"], bytes(h["value"])) for h in row["headers"]))
        for row in rows
        if row["topic"] == name
    ]


def values(rows: Sequence[Row], name: str, of: str) -> list[object]:
    return [json.loads(row["value"])[of] for row in rows if row["topic"] == name]


def over(
    spark: SparkSession,
    name: str,
    folder: Path,
    seed: int,
    hidden: int,
    *,
    one_sender: bool = False,
    alone: bool = False,
) -> list[list[Row]]:
    """What each batch gives over the visible input of `seed`, mixed with the hidden one.

    So it is compared, too, when a window closes. (The last batch closes all of them.)

    With `one_sender`, the same sender sends both, so hidden tuples move the offsets of the others.
    With `alone`, it is what the run of the first class gives, which is isolated.
    """
    whole, chance, rest = case(name), Random(seed), Random(hidden)
    run = run_of(whole)
    if alone:
        run = apart(run, run.classes[0], "query-1-1", {})
        whole = replace(whole, reaches=dict(run.reaches))
    seen, secret = Label.of(TRADES), Label.of(TRADES, COMPANY)
    found: list[list[Row]] = []
    for number in range(2):
        given = trades(chance, 12, 10 + number, seen)
        records = {"trades": given, "quotes": quotes(chance, 2)}
        if hidden:
            # Mixed as the broker takes them: each sender's records keep their order.
            others = trades(rest, rest.randint(5, 20), 3 + number, secret)
            for each in others:
                given.insert(rest.randint(0, len(given)), each)
        if one_sender:
            records["trades"] = [
                replace(each, origin=f"1:{number}:{offset}") for offset, each in enumerate(given)
            ]
        batch = replace(whole, records={of: records[of] for of in whole.records})
        tick = _NOON_MS + (60_000 if number == 0 else _LATER_MS)
        found.append([])
        run_batch(spark, whole, batch, folder, found[-1], tick_ms=tick, run=run)
    return found


def topics(batches: Sequence[Sequence[Row]], name: str) -> list[list[_Delivered]]:
    """The records of a topic, batch by batch."""
    return [topic(rows, name) for rows in batches]


@pytest.mark.parametrize("seed", range(_NUMBER))
@pytest.mark.parametrize("name", QUERIES if is_long() else ["rows"])
def test_hidden_inputs_change_nothing(
    spark: SparkSession, tmp_path: Path, name: str, seed: int
) -> None:
    """Added, removed or replaced: bytes, headers, ids and order stay, and so do offsets."""
    inputs = (0, seed * 2 + 1, seed * 2 + 2) if is_long() else (0, seed * 2 + 1)
    found = [over(spark, name, tmp_path / str(hidden), seed, hidden) for hidden in inputs]
    first, *others = (topics(batches, "0") for batches in found)
    assert all(each == first for each in others)
    assert any(first), "an empty topic shows nothing"
    if name != "anti":
        assert topics(found[0], "1") != topics(found[1], "1"), "who may see them sees a difference"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(_NUMBER))
@pytest.mark.parametrize("name", QUERIES)
def test_hidden_inputs_change_nothing_of_an_isolated_class(
    spark: SparkSession, tmp_path: Path, name: str, seed: int
) -> None:
    """Its run gives what semantics `view` gives the class, and nothing hidden changes it."""
    hidden = seed * 2 + 1
    alone = topics(over(spark, name, tmp_path / "alone", seed, hidden, alone=True), "0")
    shared = topics(over(spark, name, tmp_path / "view", seed, 0), "0")
    assert alone == shared
    assert any(alone), "an empty topic shows nothing"


@pytest.mark.long
def test_hidden_tuples_of_the_same_sender_change_no_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tuples of one time are in the order of their offsets, however large these are.

    Ids are others, because offsets are. Nobody without the key of ids can tell.
    """
    found = [
        over(spark, "rows", tmp_path / str(hidden), 4, hidden, one_sender=True) for hidden in (0, 5)
    ]
    first, second = (
        [each for batch in topics(batches, "0") for each in batch] for batches in found
    )
    assert first
    assert [each.value for each in first] == [each.value for each in second]
    assert [each.headers[0] for each in first] == [each.headers[0] for each in second]


def test_classes_come_and_go_and_state_stays(spark: SparkSession, tmp_path: Path) -> None:
    whole = case("rows")
    whole = replace(
        whole, plan=parse_sql("SELECT ISTREAM count(*) AS n FROM trades [ROWS 9]", Timed()).plan
    )
    run = run_of(whole)
    found: list[list[Row]] = []
    one, two = run.classes
    kept = []
    for number, classes in enumerate([(), (one,), (one, two), (two,), (two,)]):
        time = NOON + timedelta(hours=2 * number)
        given = [Record((time, "a", 1.0, 1), Label.of(TRADES).to_wire(), 1, f"1:0:{number}")]
        found.append([])
        query = run_batch(
            *(spark, whole, replace(whole, records={"trades": given}), tmp_path, found[-1]),
            tick_ms=_NOON_MS + 2 * number * _LATER_MS + 1_000,
            run=with_output(run, classes=classes),
        )
        kept.append(query.recentProgress[-1].stateOperators[0].numRowsTotal)
    # A class begins empty, and its state goes on while others come and go.
    assert [values(rows, "0", "n") for rows in found] == [[], [1], [2], [], []]
    assert [values(rows, "1", "n") for rows in found] == [[], [], [1], [2], [3]]
    assert kept[2] == 2
    assert kept[-1] == 1, "the state of a class that is gone is given up"


_GROUPS = {
    "windows": "SELECT window_end, count(*) AS n FROM trades "
    "GROUP BY TUMBLE(ts, INTERVAL '6' HOUR)",
    "distinct": "SELECT window_end, count(DISTINCT volume) AS n FROM trades "
    "GROUP BY TUMBLE(ts, INTERVAL '6' HOUR)",
}


@pytest.mark.long
@pytest.mark.parametrize("name", _GROUPS)
def test_the_state_of_groups_stays_while_classes_come_and_go(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    plan = parse_sql(_GROUPS[name], Timed()).plan
    whole = replace(case("windows"), plan=plan)
    run = run_of(whole)
    one, two = run.classes
    found: list[Row] = []
    for number, classes in enumerate([(), (one,), (two, one), (one, two), (one, two)]):
        time = NOON + timedelta(hours=number if number < 4 else 9)
        given = [Record((time, "a", 1.0, number), Label.of(TRADES).to_wire(), 1, f"1:0:{number}")]
        run_batch(
            *(spark, whole, replace(whole, records={"trades": given}), tmp_path, found),
            tick_ms=_NOON_MS + (number if number < 4 else 9) * _LATER_MS + 1_000,
            run=with_output(run, classes=classes),
        )
    # Of the window from noon, each class counts what came since it was there.
    assert [values(found, each, "n") for each in ("0", "1")] == [[3], [2]]


class Repeating(Market):
    """The market, where the trades are the output of another query. It may repeat a result."""

    def relation(self, name: str) -> Relation:
        return replace(super().relation(name), kind=RelationKind.OUTPUT)


@pytest.mark.long
def test_each_class_drops_the_repeats_that_it_sees(spark: SparkSession, tmp_path: Path) -> None:
    """A repeat that a class may not see takes no result away from it."""
    plan = parse_sql(_GROUPS["windows"], Repeating()).plan
    whole = replace(case("windows"), plan=plan)
    seen, hidden = Label.of(TRADES).to_wire(), Label.of(TRADES, COMPANY).to_wire()

    def trade(hours: int, label: str, origin: str) -> Record:
        return Record((NOON + timedelta(hours=hours), "a", 1.0, 1), label, None, origin)

    batches = [
        [trade(0, *each) for each in ((hidden, "x"), (seen, "x"), (seen, "x"), (seen, "y"))],
        [trade(8, seen, "z"), trade(0, seen, "y")],
        [trade(16, seen, "end")],
    ]
    found: list[Row] = []
    for given in batches:
        run_batch(spark, whole, replace(whole, records={"trades": given}), tmp_path, found)
    assert [values(found, each, "n")[:1] for each in ("0", "1")] == [[2], [2]]


@pytest.mark.long
def test_a_window_that_two_classes_see_has_two_ids(spark: SparkSession, tmp_path: Path) -> None:
    whole = case("distinct")
    given = trades(Random(1), 3, 1, Label.of(TRADES))
    found: list[Row] = []
    batch = replace(whole, records={"trades": given})
    run_batch(spark, whole, batch, tmp_path, found, tick_ms=_NOON_MS + _LATER_MS)
    ids = [header(row, 1, "id") for row in found]
    assert len(ids) == len(set(ids))
    assert values(found, "0", "many") == values(found, "1", "many")
