"""Semantics `view` batch by batch: no class learns of what is hidden from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import Row, SparkSession

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from secadmin.languages import parse_sql
from tests.differential.case import Record
from tests.differential.delivered import header, run_of
from tests.differential.hidden_inputs import (
    LATER_MS,
    NOON_MS,
    NUMBER,
    QUERIES,
    Timed,
    case,
    over,
    topics,
    trades,
    values,
)
from tests.differential.market import COMPANY, NOON, TRADES, Market
from tests.differential.streaming import run_batch
from tests.lanes import is_long
from tests.outputs import with_output


@pytest.mark.parametrize("seed", range(NUMBER))
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
            tick_ms=NOON_MS + 2 * number * LATER_MS + 1_000,
            run=with_output(run, classes=classes),
        )
        kept.append(query.recentProgress[-1].stateOperators[0].numRowsTotal)
    # A class begins empty, and its state goes on while others come and go.
    assert [values(rows, "0", "n") for rows in found] == [[], [1], [2], [], []]
    assert [values(rows, "1", "n") for rows in found] == [[], [], [1], [2], [3]]
    assert kept[2] == 2
    assert kept[-1] == 1, "the state of a class that is gone is given up"


def test_hidden_tuples_take_places_in_a_window_of_all(spark: SparkSession, tmp_path: Path) -> None:
    """Also those of earlier batches, which the state has."""
    text = "SELECT RSTREAM volume FROM trades [ROWS 2 OF ALL]"
    whole = replace(case("rows"), plan=parse_sql(text, Timed()).plan)
    seen, hidden = Label.of(TRADES).to_wire(), Label.of(TRADES, COMPANY).to_wire()
    found: list[list[Row]] = []
    for number, label in enumerate([seen, hidden, seen, seen, hidden]):
        time = NOON + timedelta(hours=2 * number)
        given = [Record((time, "a", 1.0, number), label, 1, f"1:0:{number}")]
        found.append([])
        run_batch(
            *(spark, whole, replace(whole, records={"trades": given}), tmp_path, found[-1]),
            tick_ms=NOON_MS + 2 * number * LATER_MS + 1_000,
        )
    assert [values(rows, "0", "volume") for rows in found] == [[0], [0], [2], [2, 3], [3]]
    assert [values(rows, "1", "volume") for rows in found] == [[0], [0, 1], [1, 2], [2, 3], [3, 4]]


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
            tick_ms=NOON_MS + (number if number < 4 else 9) * LATER_MS + 1_000,
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
    run_batch(spark, whole, batch, tmp_path, found, tick_ms=NOON_MS + LATER_MS)
    ids = [header(row, 1, "id") for row in found]
    assert len(ids) == len(set(ids))
    assert values(found, "0", "many") == values(found, "1", "many")
