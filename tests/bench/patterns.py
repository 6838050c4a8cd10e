"""Event patterns (003 §V): what security costs an event, and how many events a pattern takes.

The paper's events: 10,000 a second, of 30 types, with six attributes. A pattern over a partition is
measured as the platform runs it, on two cores: as a stateful streaming query, batch by batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation
from catalog.role_view import AttributeRight, RoleView, checked_view
from catalog.runs import FanOutClass
from catalog.view_plan import ViewedStream, through_views
from secadmin.languages import parse_condition, parse_sql
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from secfilter.session import build_session
from secfilter.visibility import visible_to
from tests.bench.events import (
    LABEL,
    PARTITIONS,
    RATE,
    SCHEMA,
    STREAM,
    TYPES,
    OneStream,
    event_attributes,
    event_rates,
)
from tests.bench.figure import Figure, middle
from tests.bench.world import World

EVENTS, RUNS = 20_000_000, 5
MOST_US = 1.0
LEAST = 50_000.0

MATCHES = """SELECT match_time, account, low, high FROM events MATCH_RECOGNIZE (
    PARTITION BY account ORDER BY ts MEASURES FIRST(amount) AS low, LAST(up.amount) AS high
    AFTER MATCH SKIP PAST LAST ROW PATTERN (start up{2} down) WITHIN INTERVAL '1' HOUR
    DEFINE up AS amount > PREV(amount), down AS amount < PREV(amount))"""


def patterns(_world: World) -> Iterator[Figure]:
    """Microseconds of security an event on one core, and events a second of a pattern on two."""
    with closing(_Spark("local[1]")) as one:
        costs = one.security_us()
        name = f"security of an event, {TYPES} types, 6 attributes"
        yield middle(name, costs, "µs", MOST_US)
        # A second of one core has a million microseconds.
        shares = [each * RATE / 1e4 for each in costs]
        yield middle(f"the same at {RATE:,} events/s, of one core", shares, "%")
    with closing(_Spark("local[2]")) as two:
        for tasks in (1, 2):
            rates = event_rates(two.session, MATCHES, tasks)
            beside = "one task" if tasks == 1 else f"{tasks} tasks"
            name = f"events/s of a pattern over {PARTITIONS:,} partitions, {beside}"
            yield middle(name, rates, "events/s")
        slowness = [LEAST / each for each in rates]
        yield middle(f"{LEAST:,.0f} events/s ÷ these", slowness, "ratio", 1.0)


class _Spark:
    """The platform's Spark with so many cores."""

    def __init__(self, master: str) -> None:
        self.session: SparkSession = build_session(master, None)

    def close(self) -> None:
        """End it."""
        self.session.stop()

    def security_us(self) -> list[float]:
        """What a role's policy and the label add to a query: microseconds an event, each run.

        The policy names each type, one attribute has a condition, and one is hidden. All events
        pass, so that security saves no work.
        """
        return extra_us(self._secured(), self._plain(), EVENTS, RUNS)

    def _events(self) -> DataFrame:
        number = fn.col("id")
        return self.session.range(0, EVENTS, 1, 1).select(*event_attributes(number))

    def _plain(self) -> DataFrame:
        """The same query without security."""
        return self._events().where("amount > 1").select("ts", "type", "account", "amount")

    def _secured(self) -> DataFrame:
        shown = [
            AttributeRight("ts"),
            AttributeRight("type"),
            AttributeRight("account"),
            AttributeRight("amount", parse_condition("balance > 100", SCHEMA)),
            AttributeRight("place"),
        ]
        rows = parse_condition(f"type IN ({types(TYPES)})", SCHEMA)
        text = "SELECT ts, type, account, amount FROM events WHERE amount > 1"
        return secured(self._events(), STREAM, RoleView(rows, tuple(shown)), text)


def types(count: int) -> str:
    """So many types of events, as SQL lists them."""
    return ", ".join(f"'t{number}'" for number in range(count))


def secured(events: DataFrame, stream: Relation, seen: RoleView, text: str) -> DataFrame:
    """The results of a query that a role which sees so much of the stream gets of these events."""
    viewed = ViewedStream(stream, checked_view(seen, stream))
    parsed = parse_sql(text, OneStream(viewed.relation)).plan
    plan = through_views(parsed, {stream.object_id: viewed})
    words = fn.lit(LABEL.word(0)).alias(label_column(0))

    def source(_relation: Relation) -> DataFrame:
        return events.select("*", words, fn.lit("").alias(ID))

    made = compile_plan(analyse(plan), source, lambda _relation: LABEL)
    mine = FanOutClass("out.bench.x", Clearance.of(0, 1))
    return made.frame.where(visible_to(mine, (0,), Label(0)))


def extra_us(secured: DataFrame, plain: DataFrame, events: int, runs: int) -> list[float]:
    """The microseconds an event that one query takes longer than the other, of each run."""
    for frame in (secured, plain):
        _seconds(frame)
    pairs = [(_seconds(secured), _seconds(plain)) for _ in range(runs)]
    return [(with_it - without) / events * 1e6 for with_it, without in pairs]


def _seconds(frame: DataFrame) -> float:
    """How long a query takes over all events, each of its values used."""
    # The platform's own columns, which only the secured query has, begin with two underscores.
    used = fn.bit_xor(fn.xxhash64(*(name for name in frame.columns if not name.startswith("__"))))
    started = time.monotonic()
    frame.agg(used).collect()
    return time.monotonic() - started
