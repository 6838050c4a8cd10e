"""Inputs with tuples that a class may not see, batch by batch, and what their topics get.

NON_INTERFERENCE_CASES sets how many pairs of inputs are compared for each query.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

from pyspark.sql import Row, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation
from catalog.runs import apart
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record
from tests.differential.delivered import run_of
from tests.differential.market import COMPANY, NOON, QUOTES, TRADES, Market, case_of
from tests.differential.streaming import run_batch
from tests.lanes import number_of
from tests.oracle.values import Value

NUMBER = number_of("NON_INTERFERENCE_CASES", sample=1, long=20)
NOON_MS = 1_769_860_800_000
LATER_MS = 3_600_000
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
        tick = NOON_MS + (60_000 if number == 0 else LATER_MS)
        found.append([])
        run_batch(spark, whole, batch, folder, found[-1], tick_ms=tick, run=run)
    return found


def topics(batches: Sequence[Sequence[Row]], name: str) -> list[list[_Delivered]]:
    """The records of a topic, batch by batch."""
    return [topic(rows, name) for rows in batches]
