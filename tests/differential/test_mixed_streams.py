"""Windows and joins over each other, batch by batch: however the input is cut, the same results.

MIXED_STREAM_CASES sets how many inputs each query gets.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import Row, SparkSession

from catalog.label import Label
from catalog.relation import Relation
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.differential.case import Case, Record
from tests.differential.comparing import check
from tests.differential.delivered import header, outcome, run_of
from tests.differential.expected import expected
from tests.differential.market import COMPANY, EU, NOON, QUOTES, TRADES, Market, case_of
from tests.differential.streaming import run_batch
from tests.lanes import is_long, number_of
from tests.oracle.values import Value, microseconds

_NUMBER = number_of("MIXED_STREAM_CASES", sample=1, long=5)
_COUNTS = (
    "SELECT window_start, window_end, symbol, count(*) AS n FROM trades "
    "GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND), symbol"
)
_QUOTED = (
    "SELECT window_end, symbol, max(bid) AS bid FROM quotes "
    "GROUP BY TUMBLE(at, INTERVAL '10' SECOND), symbol"
)
QUERIES = {
    "the most of each window": f"SELECT a.window_end AS until, a.symbol, a.n FROM ({_COUNTS}) AS a "
    f"JOIN (SELECT window_start, window_end, max(n) AS most FROM ({_COUNTS}) AS c "
    "GROUP BY window_start, window_end) AS m ON a.window_start = m.window_start "
    "AND a.window_end = m.window_end AND a.n = m.most",
    "the window with its stream": "SELECT t.ts, t.symbol, w.top FROM trades AS t JOIN (SELECT "
    "window_start, window_end, max(volume) AS top FROM trades GROUP BY TUMBLE(ts, INTERVAL '20' "
    "SECOND)) AS w ON t.volume = w.top AND t.ts >= w.window_start AND t.ts < w.window_end",
    "a window over pairs": "SELECT TUMBLE_START() AS since, t.symbol, count(*) AS n, sum(t.volume) "
    "AS total FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol AND q.at BETWEEN t.ts - "
    "INTERVAL '7' SECOND AND t.ts + INTERVAL '9' SECOND GROUP BY TUMBLE(t.ts, INTERVAL '20' "
    "SECOND), t.symbol",
    "a window over pairs of windows": "SELECT TUMBLE_END() AS until, count(*) AS n, sum(a.n) AS "
    f"total FROM ({_COUNTS}) AS a JOIN ({_QUOTED}) AS b ON a.symbol = b.symbol AND a.window_end = "
    "b.window_end GROUP BY TUMBLE(a.window_end, INTERVAL '40' SECOND)",
    "windows without a pair": f"SELECT a.window_end AS until, a.symbol, a.n, b.bid FROM ({_COUNTS})"
    f" AS a LEFT JOIN ({_QUOTED}) AS b ON a.symbol = b.symbol AND a.window_end = b.window_end",
    "a window over what has no pair": "SELECT TUMBLE_START() AS since, count(*) AS n FROM trades "
    "AS t WHERE NOT EXISTS (SELECT 1 FROM quotes AS q WHERE q.symbol = t.symbol AND q.at BETWEEN "
    "t.ts AND t.ts + INTERVAL '15' SECOND) GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)",
    "a window over witnesses": "SELECT TUMBLE_START() AS since, count(*) AS n FROM trades AS t "
    "WHERE symbol IN (SELECT symbol FROM \"trades-eu\" AS e WHERE e.ts BETWEEN t.ts - INTERVAL '9' "
    "SECOND AND t.ts + INTERVAL '5' SECOND) GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)",
    "three streams": 'SELECT t.ts, t.volume, e.volume AS there, q.bid FROM trades AS t, "trades-eu"'
    " AS e, quotes AS q WHERE t.symbol = e.symbol AND q.symbol = e.symbol AND e.ts BETWEEN t.ts AND"
    " t.ts + INTERVAL '9' SECOND AND q.at BETWEEN t.ts - INTERVAL '5' SECOND AND t.ts",
    "sessions with a stream": "SELECT s.until, s.symbol, s.n, q.bid FROM (SELECT SESSION_END() AS "
    "until, symbol, count(*) AS n FROM trades GROUP BY SESSION(ts, INTERVAL '7' SECOND), symbol) "
    "AS s JOIN quotes AS q ON s.symbol = q.symbol AND q.at BETWEEN s.until - INTERVAL '20' SECOND "
    "AND s.until",
    "a window over sessions with a stream": "SELECT TUMBLE_START() AS since, count(*) AS n FROM "
    "(SELECT SESSION_END() AS until, symbol, count(*) AS n FROM trades GROUP BY SESSION(ts, "
    "INTERVAL '7' SECOND), symbol) AS s JOIN quotes AS q ON s.symbol = q.symbol AND q.at BETWEEN "
    "s.until - INTERVAL '20' SECOND AND s.until GROUP BY TUMBLE(s.until, INTERVAL '20' SECOND)",
    "the first ones of each window": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY "
    f"window_start, window_end ORDER BY n DESC) AS rn FROM ({_COUNTS}) AS c WHERE n > 1) AS t "
    "WHERE rn <= 2",
    "each window of pairs beside its neighbour": "SELECT until, total - LAG(total) OVER (PARTITION "
    "BY until ORDER BY total) AS more FROM (SELECT TUMBLE_END() AS until, t.symbol, sum(t.volume) "
    "AS total FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol AND q.at BETWEEN t.ts - "
    "INTERVAL '7' SECOND AND t.ts + INTERVAL '9' SECOND GROUP BY TUMBLE(t.ts, INTERVAL '20' "
    "SECOND), t.symbol) AS w",
}
_LENGTH_S, _BATCHES = 100, 3
_SAMPLE = ["the most of each window"]


class Timed(Market):
    """The market with the broker's time."""

    def relation(self, name: str) -> Relation:
        return replace(super().relation(name), time=TimeSource.BROKER)


def given(chance: Random, name: str, count: int) -> list[Record]:
    """Records of a relation, some of one time, some with a time in microseconds."""
    own = {"trades": TRADES, "trades-eu": EU, "quotes": QUOTES}[name]
    labels = [Label.of(own)]
    if name != "quotes":
        labels.append(Label.of(own, COMPANY))
    made = []
    for offset in range(count):
        odd = timedelta(microseconds=chance.choice([0, 0, 1, 999_999]))
        time = NOON + timedelta(seconds=chance.randrange(_LENGTH_S)) + odd
        number = chance.randint(1, 5)
        values: tuple[Value, ...] = (time, chance.choice("ab"), 1.0, number)
        if name == "quotes":
            values = (time, chance.choice("abc"), float(number), True)
        made.append(Record(values, chance.choice(labels).to_wire(), 1, f"1:0:{offset}"))
    return made


def cut(chance: Random, whole: Case, ticks: list[datetime]) -> list[Case]:
    """The batches of a case, of which each but the last one ends with a tick.

    A record may come in any batch, but behind no tick of a later time.
    """
    parts: list[dict[str, list[Record]]] = [
        {name: [] for name in whole.records} for _ in range(len(ticks) + 1)
    ]
    for name, records in whole.records.items():
        for each in records:
            time = each.values[0]
            assert isinstance(time, datetime)
            passed = sum(tick <= time for tick in ticks)
            parts[chance.randint(0, passed)][name].append(each)
    return [replace(whole, records=part) for part in parts]


def streamed(spark: SparkSession, folder: Path, whole: Case, chance: Random) -> list[Row]:
    """What Kafka's sink would be given of a query that is begun anew for each batch."""
    seconds = sorted(chance.sample(range(1, _LENGTH_S), _BATCHES - 1))
    ticks = [NOON + timedelta(seconds=each) for each in seconds]
    found: list[Row] = []
    batches = cut(chance, whole, ticks)
    for batch, tick in zip(batches, [*ticks, NOON + timedelta(days=1)], strict=True):
        tick_ms = microseconds(tick) // 1_000
        run_batch(spark, whole, batch, folder, found, tick_ms=tick_ms)
    return found


@pytest.mark.parametrize("seed", range(_NUMBER))
@pytest.mark.parametrize("name", QUERIES if is_long() else _SAMPLE)
def test_the_cuts_of_the_input_change_nothing(
    spark: SparkSession, tmp_path: Path, name: str, seed: int
) -> None:
    chance = Random(seed)
    made = case_of(name, parse_sql(QUERIES[name], Timed()))
    whole = replace(made, records={of: given(chance, of, 25) for of in made.records})
    rows = streamed(spark, tmp_path, whole, chance)
    check(whole, outcome(run_of(whole), rows))
    assert expected(whole).results, "without a result nothing is shown"
    ids = [header(row, 1, "id") for row in rows if row["topic"] == "1"]
    assert len(ids) == len(set(ids)), "each result has an id of its own"
