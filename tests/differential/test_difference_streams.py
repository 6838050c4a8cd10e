"""Difference classes batch by batch: no topic shows what the rights of its reader do not cover."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import Row, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import is_stateful
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record
from tests.differential.hidden_inputs import NUMBER, topics, trades
from tests.differential.market import COMPANY, EU, TRADES, Market, case_of
from tests.differential.streaming import run_batch
from tests.lanes import is_long

QUERIES = {
    "union": 'SELECT * FROM trades UNION ALL SELECT * FROM "trades-eu"',
    "conditions": "SELECT ts, symbol, 2 * volume AS twice FROM trades WHERE volume > 1 UNION ALL "
    "SELECT ts, symbol, volume FROM \"trades-eu\" WHERE symbol <> 'b'",
}
# As rights grow, each step adds a topic with the difference to the one before.
GROWING = (
    Clearance.of(TRADES),
    Clearance.of(TRADES, EU),
    Clearance.of(TRADES, EU, COMPANY),
)
CLASSES = (
    Class(GROWING[0]),
    *(Class(own, beyond=less) for less, own in pairwise(GROWING)),
)
# The category of each stream. What a sender sends may be of a company, too.
STREAMS = {"trades": TRADES, "trades-eu": EU}


def case(name: str) -> Case:
    made = case_of(name, parse_sql(QUERIES[name], Market()), CLASSES)
    assert not is_stateful(made.plan)
    return replace(made, records=dict.fromkeys(made.records, ()))


def sent(
    held: Clearance, batch: int, seen: Random, unseen: Random | None
) -> dict[str, list[Record]]:
    """The records of a batch: those that the rights cover, mixed with others if there are any.

    Each label has a sender of its own. What is covered does not depend on what is not.
    """
    records: dict[str, list[Record]] = {name: [] for name in STREAMS}
    labels = [
        (name, Label.of(own, *more)) for name, own in STREAMS.items() for more in ((), (COMPANY,))
    ]
    for sender, (name, label) in enumerate(labels, start=1):
        if held.covers(label):
            records[name] += trades(seen, 9, sender + 10 * batch, label)
    for sender, (name, label) in enumerate(labels, start=1):
        if unseen is not None and not held.covers(label):
            for each in trades(unseen, unseen.randint(3, 9), sender + 10 * batch, label):
                records[name].insert(unseen.randint(0, len(records[name])), each)
    return records


def over(
    spark: SparkSession, name: str, folder: Path, held: Clearance, seed: int, hidden: int
) -> list[list[Row]]:
    """What each batch gives over the covered input of `seed`, mixed with the hidden one, if any."""
    whole, seen = case(name), Random(seed)
    unseen = Random(hidden) if hidden else None
    found: list[list[Row]] = []
    for number in range(2):
        batch = replace(whole, records=sent(held, number, seen, unseen))
        found.append([])
        run_batch(spark, whole, batch, folder, found[-1])
    return found


@pytest.mark.parametrize("seed", range(NUMBER))
@pytest.mark.parametrize(
    "held",
    [pytest.param(1, marks=pytest.mark.long, id="one topic"), pytest.param(2, id="two topics")],
)
@pytest.mark.parametrize("name", QUERIES if is_long() else ["conditions"])
def test_hidden_inputs_change_no_topic_of_a_subscription(
    spark: SparkSession, tmp_path: Path, name: str, held: int, seed: int
) -> None:
    """Added, replaced or removed: bytes, headers, ids and order stay, and so do the batches."""
    inputs = (0, seed * 2 + 1, seed * 2 + 2)
    found = [
        over(spark, name, tmp_path / str(hidden), GROWING[held - 1], seed, hidden)
        for hidden in inputs
    ]
    for own in map(str, range(held)):
        without, *others = (topics(batches, own) for batches in found)
        assert all(each == without for each in others)
        assert all(without), "an empty topic shows nothing"
    without, one, two = (topics(batches, str(held)) for batches in found)
    assert not any(without)
    assert any(one) and any(two) and one != two, "who may see them sees a difference"
