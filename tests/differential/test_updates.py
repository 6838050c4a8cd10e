"""EMIT UPDATES: after each batch, what each changed group holds by then, to whom it may show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from catalog.relation import Relation
from secadmin.languages import parse_sql
from tests.differential.case import Case
from tests.differential.comparing import check
from tests.differential.delivered import header, outcome, run_of
from tests.differential.expected import expected
from tests.differential.market import Market, case_of
from tests.differential.streaming import run_batch
from tests.lanes import is_long

_BOTH = 'SELECT * FROM trades UNION ALL SELECT * FROM "trades-eu"'
_ONE_SOURCE, _DIFFERENT = "one source", "different values"
QUERIES = {
    _ONE_SOURCE: """
        SELECT window_end, symbol, count(*) AS n, max(price) AS highest FROM trades
        GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol EMIT UPDATES""",
    "tumbling, by symbol": f"""
        SELECT window_end, symbol, count(*) AS n, sum(volume) AS total, max(price) AS highest
        FROM ({_BOTH}) GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol EMIT UPDATES""",
    "hopping": f"""
        SELECT window_start, window_end, count(price) AS n, avg(price) AS mean
        FROM ({_BOTH}) GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) EMIT UPDATES""",
    "filtered": f"""
        SELECT window_end, symbol, count(*) AS n FROM ({_BOTH}) WHERE volume > 4
        GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol HAVING count(*) > 1 EMIT UPDATES""",
    _DIFFERENT: """
        SELECT window_end, symbol, count(DISTINCT volume) AS volumes, topkdistinct(price, 2) AS top,
          collect_set(symbol) AS each, topk(volume, 3) AS most, count(*) AS n, sum(volume) AS total,
          LAST(price) AS last
        FROM trades
        GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE), symbol EMIT UPDATES""",
}
_BATCHES = 4
# The topic of the market's class that sees everything.
_ALL = "1"
_HOUR_MS = 3_600_000


class _Patient(Market):
    """The market with time for late tuples: none of them comes too late."""

    def relation(self, name: str) -> Relation:
        return replace(super().relation(name), lateness_ms=_HOUR_MS)


_SAMPLE = [_DIFFERENT]


@pytest.mark.parametrize("name", QUERIES if is_long() else _SAMPLE)
def test_each_batch_gives_what_changed(spark: SparkSession, tmp_path: Path, name: str) -> None:
    whole = _with_origins(case_of(name, parse_sql(QUERIES[name], _Patient())))
    batches = [_batch(whole, number) for number in range(_BATCHES)]
    found = _streamed(spark, whole, batches, tmp_path)
    so_far = replace(whole, records=dict.fromkeys(whole.records, ()))
    for batch, rows in zip(batches, found, strict=True):
        together = {name: (*so_far.records[name], *batch.records[name]) for name in batch.records}
        so_far = replace(so_far, records=together)
        check(so_far, outcome(run_of(whole), rows), batch.records)
    ids = [header(row, 1, "id") for rows in found for row in rows if row["topic"] == _ALL]
    assert len(ids) > len(expected(whole).results), "some group gave more than one update"
    assert len(ids) == len(set(ids)), "each update has an id of its own"


@pytest.mark.parametrize("narrow", [False, True])
def test_sources_of_one_partition_are_not_shuffled(
    spark: SparkSession, tmp_path: Path, narrow: bool
) -> None:
    case = case_of(_ONE_SOURCE, parse_sql(QUERIES[_ONE_SOURCE], _Patient()))
    query = run_batch(spark, case, case, tmp_path, [], narrow=narrow)
    execution: Any = query._jsq.streamingQuery()
    executed = execution.lastExecution().executedPlan().toString()
    assert ("Exchange" in executed) is not narrow


def _with_origins(case: Case) -> Case:
    """Each record with an origin of its own, because offsets begin anew in each batch."""
    records = {
        name: tuple(replace(each, origin=f"7:0:{n:03}") for n, each in enumerate(several))
        for name, several in case.records.items()
    }
    return replace(case, records=records)


def _batch(case: Case, number: int) -> Case:
    """Every fourth record of each relation."""
    return replace(case, records={n: each[number::_BATCHES] for n, each in case.records.items()})


def _streamed(
    spark: SparkSession, case: Case, batches: Sequence[Case], folder: Path
) -> list[list[Row]]:
    """What Kafka's sink would be given, batch by batch, of a query that runs through them.

    From batch to batch its sources are compiled as wide and as narrow in turn: over one source the
    state of a batch with a shuffle is taken over by one without, and back.
    """
    found: list[list[Row]] = []
    for number, batch in enumerate(batches):
        found.append([])
        run_batch(spark, case, batch, folder, found[-1], narrow=number % 2 == 1)
    return found
