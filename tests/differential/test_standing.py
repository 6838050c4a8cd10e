"""Upserts batch by batch: who is new gets first the rows that stand, and nobody else gets them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.label import Label
from catalog.runs import FedOutput, QueryRun
from secadmin.languages import parse_sql
from secfilter.lab import marked_reader, stands
from tests.differential.case import Case, Record
from tests.differential.delivered import header, run_of
from tests.differential.hidden_inputs import CLASSES, Timed
from tests.differential.market import COMPANY, NOON, TRADES, Market, case_of
from tests.differential.streaming import run_batch

_NOON_MS = 1_769_860_800_000
_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_SEEN, _HIDDEN = Label.of(TRADES), Label.of(TRADES, COMPANY)
_TOTALS = "SELECT symbol, count(*) AS n FROM trades GROUP BY symbol"
Trade = tuple[str, Label]


def case(text: str = _TOTALS) -> Case:
    made = case_of("totals", parse_sql(text, Timed()), CLASSES)
    return replace(made, records=dict.fromkeys(made.records, ()))


def run(
    whole: Case, classes: Sequence[int], readers: Sequence[int] = (), kept_ms: int = _DAY_MS
) -> QueryRun:
    """The run of the case for these of its classes."""
    made = run_of(whole)
    (output,) = made.outputs
    fed = FedOutput(
        output.relation,
        tuple(output.classes[number] for number in classes),
        labelled=bool(readers),
        readers=frozenset(readers),
        kept_ms=kept_ms,
    )
    return replace(made, outputs=(fed,))


class Steps:
    """A query whose batches have trades of their own minutes."""

    def __init__(self, spark: SparkSession, whole: Case, folder: Path) -> None:
        self._spark, self._whole, self._folder = spark, whole, folder
        self._minute = 0
        self._sent = 0

    def go(self, run: QueryRun, *trades: Trade) -> dict[str, list[Row]]:
        """What a batch with these trades gives, by topic."""
        records = [self._record(number, *each) for number, each in enumerate(trades)]
        self._minute += 1
        found: list[Row] = []
        batch = replace(self._whole, records={"trades": records})
        tick_ms = _NOON_MS + self._minute * _MINUTE_MS
        run_batch(self._spark, self._whole, batch, self._folder, found, tick_ms=tick_ms, run=run)
        topics: dict[str, list[Row]] = {}
        for row in found:
            topics.setdefault(row["topic"], []).append(row)
        return topics

    def _record(self, number: int, symbol: str, label: Label) -> Record:
        self._sent += 1
        time = NOON + timedelta(minutes=self._minute, seconds=number + 1)
        values = (time, symbol, 1.0, 1)
        return Record(values, label.to_wire(), 1, f"1:0:{self._sent}")


def counts(rows: Sequence[Row]) -> dict[object, object]:
    """The number of each symbol, of rows that have one for each."""
    values = [json.loads(row["value"]) for row in rows]
    assert len({each["symbol"] for each in values}) == len(values)
    return {each["symbol"]: each["n"] for each in values}


def versions(rows: Sequence[Row]) -> list[int]:
    return [int(header(row, 2, "row-version")) for row in rows]


@pytest.mark.long
def test_a_new_class_gets_the_rows_that_stand_and_it_covers(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = case()
    steps = Steps(spark, whole, tmp_path)
    alone, both = run(whole, [0]), run(whole, [0, 1])
    first = steps.go(alone, ("a", _SEEN), ("b", _SEEN), ("c", _SEEN), ("b", _HIDDEN))
    assert first.keys() == {"0"}
    second = steps.go(both)
    assert second.keys() == {"1"}, "the class that was there gets nothing again"
    assert counts(second["1"]) == {"a": 1, "b": 2, "c": 1}
    assert steps.go(both) == {}, "once is enough"
    third = steps.go(both, ("a", _SEEN))
    assert {name: counts(rows) for name, rows in third.items()} == {"0": {"a": 2}, "1": {"a": 2}}
    assert max(versions(second["1"])) < min(versions(third["1"])), "no version goes back"


def test_a_new_class_gets_nothing_that_it_does_not_cover(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = case()
    steps = Steps(spark, whole, tmp_path)
    steps.go(run(whole, [1]), ("a", _SEEN), ("b", _SEEN), ("b", _HIDDEN), ("c", _HIDDEN))
    found = steps.go(run(whole, [0, 1]))
    assert {name: counts(rows) for name, rows in found.items()} == {"0": {"a": 1}}


@pytest.mark.long
def test_hidden_tuples_change_nothing_of_what_a_new_class_gets(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = case()
    found = []
    for hidden in ((), (("c", _HIDDEN), ("d", _HIDDEN))):
        steps = Steps(spark, whole, tmp_path / str(len(hidden)))
        steps.go(run(whole, [1]), ("a", _SEEN), ("b", _SEEN), *hidden)
        rows = steps.go(run(whole, [0, 1]))["0"]
        found.append([(row["key"], row["value"], versions([row])) for row in rows])
    assert found[0] == found[1] != []


@pytest.mark.long
def test_rows_come_again_before_the_topic_drops_them(spark: SparkSession, tmp_path: Path) -> None:
    whole = case()
    steps = Steps(spark, whole, tmp_path)
    short = run(whole, [0], kept_ms=2)
    steps.go(short, ("a", _SEEN), ("b", _SEEN))
    again = steps.go(short, ("b", _SEEN))["0"]
    # What changes comes too. Of each key the highest version has the newest number.
    last = {json.loads(row["key"])["symbol"]: json.loads(row["value"])["n"] for row in again}
    assert last == {"a": 1, "b": 2}
    assert versions(again) == sorted(versions(again))


@pytest.mark.long
def test_a_deleted_group_does_not_come_again(spark: SparkSession, tmp_path: Path) -> None:
    text = "UPSERT(SELECT symbol, count(*) AS n FROM trades [RANGE 90 SECONDS] GROUP BY symbol)"
    whole = case(text)
    steps = Steps(spark, whole, tmp_path)
    steps.go(run(whole, [0]), ("a", _SEEN))
    steps.go(run(whole, [0]), ("b", _SEEN))
    gone = steps.go(run(whole, [0]))
    assert [row["value"] for row in gone["0"]] == [None]
    assert steps.go(run(whole, [0, 1])) == {}


@pytest.mark.long
def test_a_new_reader_gets_them_with_a_mark(spark: SparkSession, tmp_path: Path) -> None:
    whole = case()
    steps = Steps(spark, whole, tmp_path)
    steps.go(run(whole, [0]), ("a", _SEEN), ("b", _HIDDEN))
    lab = run_of(whole).output.topic
    found = steps.go(run(whole, [0], [11]))
    assert found.keys() == {lab}
    others = found[lab]
    assert sorted(row["value"].split("\x1f")[1:] for row in others) == [
        ["false", "a", "1"],
        ["false", "b", "1"],
        # The mark.
        ["true", "\x1e", "\x1e"],
    ]
    assert all(stands(f"9:{row['key']}") for row in others)
    assert len({row["key"] for row in others}) == 3
    assert [reader for row in others if (reader := marked_reader(f"9:{row['key']}"))] == [11]
    # Another reader gets them too. A change has no such key.
    found = steps.go(run(whole, [0], [11, 12]), ("a", _SEEN))
    again = [row for row in found[lab] if stands(f"9:{row['key']}")]
    assert len(again) == 3
    assert [reader for row in again if (reader := marked_reader(f"9:{row['key']}"))] == [12]
    (change,) = [row for row in found[lab] if row not in again]
    assert change["value"].split("\x1f")[2:] == ["a", "2"]


@pytest.mark.long
def test_if_the_data_moves_time_nothing_tells_how_far_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = case_of("totals", parse_sql(_TOTALS, Market()), CLASSES)
    whole = replace(made, records=dict.fromkeys(made.records, ()))
    steps = Steps(spark, whole, tmp_path)
    steps.go(run(whole, [0]), ("a", _SEEN))
    steps.go(run(whole, [0], [11]), ("b", _HIDDEN))
    found = steps.go(run(whole, [0, 1], [11]), ("c", _HIDDEN))
    lab = found.pop(run_of(whole).output.topic)
    assert {row["value"].split("\x1f")[2] for row in lab} <= {"b", "c"}
    assert {symbol for rows in found.values() for symbol in counts(rows)} <= {"b", "c"}
