"""Ingest decides which records are late, one by one, and what it does with ticks."""

from __future__ import annotations

import random
import time
from dataclasses import replace

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from catalog.topics import ECHO_TOPIC
from secfilter.ingest import ingest
from secfilter.tick_mark import TickMark, new_mark
from tests.senders import sent

SCHEMA = Schema((Attribute("at", Type.TIMESTAMP, required=True), Attribute("n", Type.BIGINT)))
# 2027-01-15T08:00:00.500Z
TAKEN_MS = 1_800_000_000_500
TICKS = new_mark("a key")
# A record, and when the broker took it.
Taken = tuple[str, bytes, int]


def stream(number: int, name: str, lateness_ms: int, by: TimeSource) -> IngestStream:
    relation = Relation(number, name, RelationKind.STREAM, SCHEMA, "at", lateness_ms, time=by)
    return sent(IngestStream(relation, Label.of(number), 60_000, 10_000))


RUN = IngestRun(
    "ingest-1",
    (
        stream(1, "short", 1_000, TimeSource.BROKER),
        stream(2, "long", 60_000, TimeSource.BROKER),
        stream(3, "files", 0, TimeSource.DATA),
    ),
)


def record(topic: str, behind_ms: int, n: int = 0, taken_ms: int = TAKEN_MS) -> Taken:
    """A record whose event time is so much before the broker took it."""
    at_ms = taken_ms - behind_ms
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // 1000))
    return f"in.{topic}", f'{{"at":"{text}.{at_ms % 1000:03d}Z","n":{n}}}'.encode(), taken_ms


def run(spark: SparkSession, taken: list[Taken], ticks: TickMark | None = TICKS) -> list[Row]:
    rows = [(t, b"k", value, 3, n, ms) for n, (t, value, ms) in enumerate(taken)]
    columns = "topic string, key binary, value binary, partition int, offset bigint, ms bigint"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    timed = frame.withColumn("timestamp", fn.timestamp_millis("ms")).drop("ms")
    return list(ingest(timed, RUN, {}, ticks).collect())


def reason(row: Row) -> str:
    return bytes(row["headers"][0]["value"]).decode()


EDGES = {
    ("short", 1_000): "lab.short",
    ("short", 1_001): "quarantine.short",
    ("long", 1_001): "lab.long",
    ("long", 60_000): "lab.long",
    ("long", 60_001): "quarantine.long",
    ("files", 10**12): "lab.files",
}


def test_a_record_is_late_by_its_own_times_and_its_streams_lateness(spark: SparkSession) -> None:
    rows = run(spark, [record(name, behind) for name, behind in EDGES])
    assert [row["topic"] for row in rows] == list(EDGES.values())


def test_the_reason_names_the_times_and_the_lateness(spark: SparkSession) -> None:
    (row,) = run(spark, [record("short", 61_500)])
    assert reason(row) == (
        "at: late. It is 2027-01-15T07:58:59.000Z, the broker took the record at "
        "2027-01-15T08:00:00.500Z, and the stream's lateness is 1000 ms"
    )


def test_the_same_records_are_late_however_the_input_is_cut(spark: SparkSession) -> None:
    chance = random.Random(5)
    taken = [
        record("short", chance.randint(-3_000, 3_000), n, TAKEN_MS + chance.randint(0, 5_000))
        for n in range(60)
    ]
    whole = [(row["topic"], bytes(row["value"])) for row in run(spark, taken)]
    assert {topic for topic, _ in whole} == {"lab.short", "quarantine.short"}
    shuffled = chance.sample(taken, len(taken))
    pieces = [shuffled[:7], shuffled[7:30], shuffled[30:]]
    cut = [(row["topic"], bytes(row["value"])) for piece in pieces for row in run(spark, piece)]
    assert sorted(cut) == sorted(whole)


def test_a_tick_is_echoed_in_its_place(spark: SparkSession) -> None:
    taken = [record("short", 0), ("in.long", TICKS.value, TAKEN_MS), record("long", 0)]
    rows = run(spark, taken)
    assert [row["topic"] for row in rows] == ["lab.short", ECHO_TOPIC, "lab.long"]
    assert bytes(rows[1]["value"]).decode() == f"{TICKS.life}:2:3:1:{TAKEN_MS}"


def test_a_tick_of_another_life_is_nothing(spark: SparkSession) -> None:
    others = [replace(TICKS, life=life).value for life in ("f" * 32, "", "anything")]
    rows = run(spark, [*(("in.short", each, TAKEN_MS) for each in others), record("short", 0)])
    assert [row["topic"] for row in rows] == ["lab.short"]


FORGED = {
    "the mark of another key": new_mark("another key").value,
    "the life alone": TICKS.life.encode(),
    "a part of the mark": TICKS.value[1:],
    "an echo": f"{TICKS.life}:1:0:5:{TAKEN_MS}".encode(),
}


def test_a_sender_cannot_make_a_tick(spark: SparkSession) -> None:
    rows = run(spark, [("in.short", value, TAKEN_MS) for value in FORGED.values()])
    for (what, value), row in zip(FORGED.items(), rows, strict=True):
        assert (row["topic"], bytes(row["value"])) == ("quarantine.short", value), what


def test_marks_are_the_same_for_one_key_and_lives_are_not() -> None:
    again = new_mark("a key")
    assert again.mark == TICKS.mark != new_mark("another key").mark
    assert again.life != TICKS.life
    assert TICKS.mark.decode() not in repr(TICKS)
