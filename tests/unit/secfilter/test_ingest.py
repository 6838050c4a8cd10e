"""What ingest lets through and what it refuses, case by case (`ingest_cases.json`)."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Sender
from catalog.schema import Attribute, Schema, Type
from secfilter.columns import SENDER
from secfilter.ingest import ingest
from secfilter.lab import HEADERS_TYPE, read_lab
from tests.senders import sent

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("ingest_cases.json").read_text(encoding="utf-8")
)
SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP),
        Attribute("n", Type.BIGINT),
        Attribute("x", Type.DOUBLE),
        Attribute("s", Type.STRING, required=True),
        Attribute("b", Type.BOOLEAN),
    )
)
OTHER = Schema((Attribute("id", Type.BIGINT, required=True),))
KIND = RelationKind.STREAM
ONE = Relation(1, "one", KIND, SCHEMA, "at", 1000)
TWO = Relation(2, "two", KIND, OTHER, None, 0)
RUN = IngestRun(
    "ingest-1",
    (
        sent(
            IngestStream(Relation(1, "one", KIND, SCHEMA, "at", 1000), Label.of(0), 60_000, 10_000)
        ),
        sent(IngestStream(Relation(2, "two", KIND, OTHER, None, 0), Label.of(65), 60_000, 20)),
    ),
)
Record = tuple[str, bytes | None]
# When the broker took the records: in 2027.
TAKEN_S = 1_800_000_000.5


def run(
    spark: SparkSession,
    records: list[Record],
    newest: dict[int, dict[int, int]] | None = None,
    streams: IngestRun = RUN,
) -> list[Row]:
    rows = [(topic, b"k", value, 3, n, TAKEN_S) for n, (topic, value) in enumerate(records)]
    frame = spark.createDataFrame(
        rows,
        "topic string, key binary, value binary, partition int, offset bigint, timestamp double",
    ).withColumn("timestamp", fn.col("timestamp").cast("timestamp"))
    return list(ingest(frame.coalesce(1), streams, newest or {}).collect())


def headers(row: Row) -> list[tuple[str, str]]:
    return [(h["key"], bytes(h["value"]).decode()) for h in row["headers"]]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[str, Row]:
    """All cases in one go, one of them behind the other: none disturbs its neighbours."""
    values = [c["json"] if c["json"] is None else c["json"].encode() for c in CASES]
    rows = run(spark, [("in.one", value) for value in values])
    return {case["id"]: row for case, row in zip(CASES, rows, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_case(case: dict[str, Any], results: dict[str, Row]) -> None:
    row, place = results[case["id"]], CASES.index(case)
    if "lab" in case:
        expected = case["lab"].split("|")
        got = bytes(row["value"]).decode().replace("\x1e", "-").split("\x1f")
        assert (row["topic"], got) == ("lab.one", expected)
        assert headers(row) == [("tuple-3", "1;1")]
        assert (row["key"], row["partition"]) == (f"1:3:{place}".encode(), 3)
        return
    assert row["topic"] == "quarantine.one"
    assert headers(row) == [
        ("reason", case["reason"]),
        ("sender", "1"),
        ("partition", "3"),
        ("offset", str(place)),
        ("timestamp", "1800000000500"),
    ]
    value = case["json"] if case["json"] is None else case["json"].encode()
    assert (row["key"], row["value"], row["partition"]) == (b"k", value, None)


RAW = {
    "latin-1": (b'{"at":"2026-01-31T12:00:00Z","s":"\xff"}', "not UTF-8"),
    "surrogate": (b'{"at":"2026-01-31T12:00:00Z","s":"\xed\xa0\x80"}', "not UTF-8"),
    "overlong": (b'{"at":"2026-01-31T12:00:00Z","s":"\xc0\x80"}', "not UTF-8"),
    "large": (b'{"s":"' + b"x" * 10_000 + b'"}', "larger than the stream allows"),
    "UTF-16 with a mark": (b"\xff\xfe{\0", "looks like UTF-16"),
    "UTF-16": (b"{\0}\0", "looks like UTF-16"),
    "Avro": (b"\0\0\0\0\2H", "looks like Avro of a schema registry"),
    "open": (b"[" * 9_000, "an array, expected an object"),
    "deep": (b"[" * 990 + b"]" * 990, "an array, expected an object"),
    "deep objects": (
        b'{"s":' + b'{"a":' * 990 + b"1" + b"}" * 991,
        "s: expected string, found object",
    ),
    "deep both": (
        b'{"s":' + b'[{"a":' * 490 + b"1" + b"}]" * 490 + b"}",
        "s: expected string, found array",
    ),
    "digits": (
        b'{"s":"a","n":' + b"9" * 5_000 + b"}",
        "a field is given twice, a number has more",
    ),
}


def test_bytes_that_no_text_case_can_hold(spark: SparkSession) -> None:
    """Each of them between two records of another stream, which it does not disturb."""
    good = ("in.two", b'{"id":1}')
    records: list[Record] = [good]
    for value, _ in RAW.values():
        records += [("in.one", value), good]
    rows = run(spark, records)
    assert [row["topic"] for row in rows[::2]] == ["lab.two"] * (len(RAW) + 1)
    for (name, (value, reason)), row in zip(RAW.items(), rows[1::2], strict=True):
        assert (row["topic"], row["value"]) == ("quarantine.one", value), name
        assert headers(row)[0][1].startswith(reason), name


HOSTILE = {
    "escapes": b'{"s":"' + b"\\n" * 400_000,
    "characters": b'{"s":"' + b"a\\\\" * 250_000 + b"\\x",
    "numbers": b'{"s":' + b"9" * 800_000 + b"x",
    "blanks": b'{"s"' + b" " * 800_000 + b"x",
    "fields": b"{" + b'"s":1,' * 130_000 + b"NaN",
    "fields twice": b"{" + b'"s":1,' * 130_000 + b'"b":1}',
    "two long names": b'{"' + b"n" * 49_000 + b'":1,"' + b"n" * 49_000 + b'":1}',
    "open arrays": b'{"s":' + b"[" * 800_000,
    "arrays": b'{"s":[' + b"[1],[2]," * 100_000 + b"x",
    "objects": b'{"s":' + b'{"a":{"b":[1,{"c":' * 40_000,
    "names": b"{" + b",".join(b'"n%d":1' % n for n in range(80_000)) + b"}",
    "quoted names": b"{" + b",".join(b'"``%d`":1' % n for n in range(60_000)) + b"}",
}


def test_a_reason_takes_no_longer_than_the_record_is_long(spark: SparkSession) -> None:
    """Larger than any stream takes by default; one that backtracked would take hours."""
    relation = Relation(1, "one", KIND, SCHEMA, "at", 1000)
    streams = IngestRun("ingest-1", (sent(IngestStream(relation, Label.of(0), 60_000, 900_000)),))
    begun = time.monotonic()
    rows = run(spark, [("in.one", value) for value in HOSTILE.values()], streams=streams)
    assert time.monotonic() - begun < 60
    reasons = {name: headers(row)[0][1] for name, row in zip(HOSTILE, rows, strict=True)}
    assert all(len(reason) < 200 for reason in reasons.values()), reasons
    assert reasons["escapes"] == "s: ends too soon, at byte 800007"
    assert reasons["fields"] == "s: not JSON at byte 780001"
    assert reasons["fields twice"] == "s: given twice"
    assert reasons["two long names"] == f"{'n' * 64}: given twice"
    assert reasons["names"] == "n0: unknown field"
    assert reasons["quoted names"] == "``0`: unknown field"


def test_each_stream_has_its_own_schema_label_and_size(spark: SparkSession) -> None:
    records: list[Record] = [
        ("in.two", b'{"id":7}'),
        ("in.two", b'{"at":"2026-01-31T12:00:00Z","s":"a"}'),
        ("in.one", b'{"id":7}'),
        ("in.two", b'{"s":"a"}'),
    ]
    rows = run(spark, records)
    kinds = ["lab.two", "quarantine.two", "quarantine.one", "quarantine.two"]
    assert [row["topic"] for row in rows] == kinds
    assert rows[0]["key"] == b"2:3:0"
    assert headers(rows[0]) == [("tuple-3", "0,2;2")]
    assert bytes(rows[0]["value"]) == b"7"
    assert [headers(row)[0][1].split()[0] for row in rows[1:]] == ["larger", "id:", "s:"]


def test_a_query_reads_from_which_sender_a_tuple_is(spark: SparkSession) -> None:
    """That is what a minimum of senders counts."""
    senders = (Sender(12, "in.two.a"), Sender(2**40, "in.two.b"))
    stream = IngestStream(TWO, Label.of(65), 60_000, 20, senders=senders)
    records: list[Record] = [(each.topic, b'{"id":7}') for each in senders]
    lab = [
        (row["key"], bytes(row["value"]), row["headers"], row["partition"], 0)
        for row in run(spark, records, streams=IngestRun("ingest-1", (stream,)))
    ]
    columns = f"key binary, value binary, headers {HEADERS_TYPE}, partition int, offset bigint"
    read = read_lab(spark.createDataFrame(lab, columns), TWO, Label.of(65), senders=True)
    assert sorted(row[SENDER] for row in read.collect()) == [12, 2**40]


def test_what_lab_holds_is_left_out_but_quarantine_repeats(spark: SparkSession) -> None:
    records: list[Record] = [("in.two", b'{"id":1}'), ("in.two", b"x"), ("in.two", b'{"id":2}')]
    rows = run(spark, records, {2: {3: 1, 4: 99}, 1: {3: 99}})
    assert [(row["topic"], row["value"]) for row in rows] == [
        ("quarantine.two", b"x"),
        ("lab.two", b"2"),
    ]


def test_streams_of_one_schema_keep_what_is_their_own(spark: SparkSession) -> None:
    """Label, topics, limits, and what lab holds already, also beside a stream of another schema."""

    def stream(number: int, name: str, schema: Schema, max_bytes: int, ahead: int) -> IngestStream:
        label = Label.of(number)
        time_of = "at" if schema is SCHEMA else None
        relation = Relation(number, name, KIND, schema, time_of, 1000)
        return sent(IngestStream(relation, label, ahead, max_bytes))

    streams = (
        stream(10, "a", OTHER, 10, 0),
        stream(1, "b", SCHEMA, 100, 10_000),
        stream(2, "c", OTHER, 100, 0),
        stream(64, "d", SCHEMA, 100, 100_000),
    )
    long, ahead = b'{"id": 1234567}', iso(50)
    wrong = [("in.a", long), ("in.c", long), ("in.b", ahead), ("in.d", ahead)]
    records: list[Record] = [*wrong, ("in.c", b'{"id":4}'), ("in.a", b'{"id":5}')]
    newest = {2: {3: 4, 0: 99}, 10: {2: 99, 4: 99}}
    rows = run(spark, records, newest, IngestRun("ingest-1", streams))
    topics = ["quarantine.a", "quarantine.b", "lab.d", "lab.a"]
    assert [row["topic"] for row in rows] == topics
    assert [headers(row)[0] for row in rows[:2]] == [
        ("reason", "larger than the stream allows: 15 bytes, at most 10"),
        ("reason", "at: too far ahead of when the broker took it"),
    ]
    assert [headers(row) for row in rows[2:]] == [
        [("tuple-3", "0,1;64")],
        [("tuple-3", "1024;10")],
    ]
    assert [bytes(row["value"]).decode().split("\x1f")[0] for row in rows[3:]] == ["5"]


@cache
def iso(ahead_s: float) -> bytes:
    moment = TAKEN_S + ahead_s
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
    return f'{{"at":"{text}","s":"a"}}'.encode()


def test_event_time_may_be_a_little_ahead(spark: SparkSession) -> None:
    rows = run(spark, [("in.one", iso(30)), ("in.one", iso(120))])
    assert [row["topic"] for row in rows] == ["lab.one", "quarantine.one"]
