"""Event patterns (003 §V): what security costs an event, and how many events a pattern takes.

The paper's events: 10,000 a second, of 30 types, with six attributes. A pattern over a partition is
measured as the platform runs it, on two cores: as a stateful streaming query, batch by batch.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.role_view import AttributeRight, RoleView, checked_view
from catalog.runs import FanOutClass
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from catalog.view_plan import ViewedStream, through_views
from secadmin.languages import parse_condition, parse_sql
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from secfilter.session import build_session
from secfilter.visibility import visible_to
from tests.bench.figure import Figure, middle
from tests.bench.world import World

TYPES, RATE = 30, 10_000
EVENTS, RUNS = 20_000_000, 5
MOST_US = 1.0
# The first batches compile.
BATCHES, WARM, BATCH = 12, 4, 100_000
PARTITIONS = 1_000
LEAST = 50_000.0

SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        Attribute("type", Type.STRING, required=True),
        Attribute("account", Type.BIGINT),
        Attribute("amount", Type.DOUBLE),
        Attribute("balance", Type.DOUBLE),
        Attribute("place", Type.STRING),
    )
)
STREAM = Relation(
    1, "events", RelationKind.STREAM, SCHEMA, "ts", lateness_ms=1_000, time=TimeSource.DATA
)
LABEL = Label.of(0, 1)
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
            rates = two.pattern_rates(tasks)
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
        return self.session.range(0, EVENTS, 1, 1).select(*_attributes(number))

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

    def pattern_rates(self, tasks: int) -> list[float]:
        """Events a second of a pattern, of each batch that comes when Java is warm.

        One task is the default. `[secfilter.options]` of the settings may give a query more.
        """
        self.session.conf.set("spark.sql.shuffle.partitions", tasks)
        plan = parse_sql(MATCHES, _One(STREAM)).plan
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder) / "events"
            self._write(given)

            def source(_relation: Relation) -> DataFrame:
                known = self.session.read.parquet(str(given)).schema
                reader = self.session.readStream.schema(known).option("maxFilesPerTrigger", 1)
                return reader.parquet(str(given))

            frame = compile_plan(analyse(plan), source, lambda _relation: LABEL).frame
            writer: Any = frame.writeStream.format("noop").outputMode("append")
            writer = writer.option("checkpointLocation", str(Path(folder) / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            batches = [each for each in query.recentProgress if each.numInputRows][WARM:]
            return [
                each.numInputRows / each.durationMs["triggerExecution"] * 1e3 for each in batches
            ]

    def _write(self, folder: Path) -> None:
        """A file for each batch, in the order of their times."""
        for batch in range(BATCHES):
            first = batch * BATCH
            numbers = self.session.range(first, first + BATCH, 1, 1)
            lineage = fn.lpad(fn.col("id").cast("string"), 12, "0").alias(ID)
            words = fn.lit(LABEL.word(0)).alias(label_column(0))
            events = numbers.select(*_attributes(fn.col("id")), words, lineage)
            events.coalesce(1).write.mode("append").parquet(str(folder))


class _One:
    """A resolver for one relation."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    def relation(self, _name: str) -> Relation:
        """The relation."""
        return self._relation


def types(count: int) -> str:
    """So many types of events, as SQL lists them."""
    return ", ".join(f"'t{number}'" for number in range(count))


def secured(events: DataFrame, stream: Relation, seen: RoleView, text: str) -> DataFrame:
    """The results of a query that a role which sees so much of the stream gets of these events."""
    viewed = ViewedStream(stream, checked_view(seen, stream))
    parsed = parse_sql(text, _One(viewed.relation)).plan
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


def _attributes(number: Column) -> list[Column]:
    """An event by its number: 10,000 come in a second."""
    mixed = fn.hash(number)
    return [
        fn.timestamp_micros(fn.lit(1_700_000_000_000_000) + number * (1_000_000 // RATE)).alias(
            "ts"
        ),
        fn.concat(fn.lit("t"), fn.pmod(mixed, fn.lit(TYPES)).cast("string")).alias("type"),
        fn.pmod(mixed, fn.lit(PARTITIONS)).cast("bigint").alias("account"),
        fn.pmod(fn.hash(mixed), fn.lit(1_000)).cast("double").alias("amount"),
        fn.pmod(fn.hash(mixed, number), fn.lit(1_000)).cast("double").alias("balance"),
        fn.concat(fn.lit("p"), fn.pmod(number, fn.lit(100)).cast("string")).alias("place"),
    ]


def _seconds(frame: DataFrame) -> float:
    """How long a query takes over all events, each of its values used."""
    # The platform's own columns, which only the secured query has, begin with two underscores.
    used = fn.bit_xor(fn.xxhash64(*(name for name in frame.columns if not name.startswith("__"))))
    started = time.monotonic()
    frame.agg(used).collect()
    return time.monotonic() - started
