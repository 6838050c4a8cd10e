"""Role expressions in ingest: each form of the label rule, what is parked, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.label_rule import ByExpression, ByHeader, BySender, LabelRule, fixed_texts
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Sender
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from secfilter.ingest import ingest
from secfilter.lab import HEADERS_TYPE
from secfilter.tick_mark import TickMark
from tests.senders import sent

KIND = RelationKind.STREAM
SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("ward", Type.STRING),
        Attribute("level", Type.BIGINT),
        Attribute("allowed", Type.STRING),
    )
)
TAKEN_S = 1_800_000_000.5
AT = "2027-01-15T08:00:00Z"
SOURCE, DOCTOR, ICU = Label.of(1), Label.of(70), Label.of(3)
TEXTS = (("doctor", DOCTOR), ("doctor & icu", DOCTOR | ICU))
MARK = TickMark(b"m" * 64, "0" * 32)


def string(value: str) -> Literal:
    return Literal(value, Type.STRING)


BY_WARD = ByExpression(
    Call(
        "case",
        (
            Call("=", (AttributeRef("ward"), string("ICU"))),
            string("doctor & icu"),
            Call(">", (AttributeRef("level"), Literal(3, Type.BIGINT))),
            AttributeRef("allowed"),
            string("doctor"),
        ),
    )
)
RULES: dict[str, LabelRule] = {
    "by_sender": BySender(),
    "by_header": ByHeader("roles"),
    "by_ward": BY_WARD,
    "by_attribute": ByExpression(AttributeRef("allowed")),
}


def stream(number: int, name: str, rule: LabelRule | None) -> IngestStream:
    relation = Relation(number, name, KIND, SCHEMA, "at", 60_000, time=TimeSource.BROKER)
    own = (
        Sender(number * 10, f"in.{name}.al", "doctor"),
        Sender(number * 10 + 1, f"in.{name}.bo"),
        Sender(number * 10 + 2, f"in.{name}.cy", "nurse"),
        Sender(number * 10 + 9, f"in.{name}.back", readmits=True),
    )
    return IngestStream(relation, SOURCE, 60_000, 10_000, senders=own, rule=rule, texts=TEXTS)


RUN = IngestRun(
    "ingest-1",
    (
        sent(IngestStream(Relation(1, "plain", KIND, SCHEMA, None, 0), Label.of(9), 1, 10_000)),
        *(stream(number, name, rule) for number, (name, rule) in enumerate(RULES.items(), start=2)),
    ),
)
Headers = list[tuple[str, bytes]]


def run(
    spark: SparkSession,
    records: list[tuple[str, str, Headers]],
    newest: dict[int, dict[int, int]] | None = None,
) -> list[Row]:
    rows = [
        (topic, b"k", value.encode(), 3, n, TAKEN_S, headers)
        for n, (topic, value, headers) in enumerate(records)
    ]
    frame = spark.createDataFrame(
        rows,
        "topic string, key binary, value binary, partition int, offset bigint, timestamp double, "
        f"headers {HEADERS_TYPE}",
    ).withColumn("timestamp", fn.col("timestamp").cast("timestamp"))
    return list(ingest(frame.coalesce(1), RUN, newest or {}, MARK).collect())


def headers(row: Row) -> dict[str, str]:
    return {h["key"]: bytes(h["value"]).decode() for h in row["headers"]}


def record(ward: str = "A", level: int = 1, allowed: str | None = None) -> str:
    written = "null" if allowed is None else f'"{allowed}"'
    return f'{{"at":"{AT}","ward":"{ward}","level":{level},"allowed":{written}}}'


CASES: list[tuple[str, str, str, Headers, str]] = [
    ("of another stream", "in.plain", record(), [], "lab 512"),
    ("the sender's policy", "in.by_sender.al", record(), [], "lab 2,64"),
    ("no policy", "in.by_sender.bo", record(), [], "its sender has set no policy"),
    ("a policy that is not known here", "in.by_sender.cy", record(), [], "parked nurse"),
    ("a header", "in.by_header.al", record(), [("x", b"1"), ("roles", b"doctor")], "lab 2,64"),
    ("no header", "in.by_header.al", record(), [], "the record must have the header roles once"),
    (
        *("two headers", "in.by_header.al", record()),
        *([("roles", b"doctor"), ("roles", b"icu")], "the header roles once"),
    ),
    (
        *("bytes", "in.by_header.al", record()),
        *([("roles", b"\xff")], "the header roles once, as UTF-8"),
    ),
    ("a new text", "in.by_header.al", record(), [("roles", b"a | b")], "parked a | b"),
    ("empty", "in.by_header.al", record(), [("roles", b"")], "parked "),
    ("long", "in.by_header.al", record(), [("roles", b"a" * 1_001)], "more than 1000 characters"),
    ("a condition", "in.by_ward.al", record(ward="ICU"), [], "lab 10,64"),
    ("otherwise", "in.by_ward.al", record(), [], "lab 2,64"),
    ("an attribute", "in.by_ward.al", record(level=4, allowed="icu"), [], "parked icu"),
    ("known", "in.by_ward.al", record(level=4, allowed="doctor"), [], "lab 2,64"),
    ("null", "in.by_ward.al", record(level=4), [], "the stream's label rule gives none"),
    ("its own", "in.by_attribute.bo", record(allowed="doctor & icu"), [], "lab 10,64"),
    ("a quotation", "in.by_attribute.bo", record(allowed='\\"a b\\"'), [], 'parked "a b"'),
    ("no JSON", "in.by_attribute.bo", "{", [], "ends too soon"),
    # Nobody but the platform gives a record a label, whatever headers it has.
    (
        *("a sender's own label", "in.by_attribute.bo", record(allowed="x")),
        *([("timestamp", b"1"), ("sender", b"99"), ("label", b"1")], "parked x"),
    ),
]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> list[Row]:
    return run(spark, [(topic, value, given) for _, topic, value, given, _ in CASES])


@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_case(results: list[Row], at: int) -> None:
    _, topic, value, _, wanted = CASES[at]
    row, found = results[at], headers(results[at])
    stream_name = topic.split(".")[1]
    kind, _, told = wanted.partition(" ")
    if kind == "lab":
        assert (row["topic"], row["partition"]) == (f"lab.{stream_name}", 3)
        assert found["tuple-3"].partition(";")[0] == told
        assert row["key"].endswith(f":3:{at}".encode())
    elif kind == "parked":
        assert row["topic"] == f"parked.{stream_name}"
        assert (row["key"], row["value"], row["partition"]) == (b"k", value.encode(), 3)
        assert list(found) == ["timestamp", "sender", "partition", "offset", "roles"]
        assert (found["roles"], found["offset"]) == (told, str(at))
        assert found["timestamp"] == "1800000000500"
    else:
        assert row["topic"] == f"quarantine.{stream_name}"
        assert wanted in found["reason"]


def back(taken_ms: int, label: str | None = "2,64") -> Headers:
    written = [("timestamp", str(taken_ms).encode()), ("sender", b"21")]
    return [*written, ("label", label.encode())] if label is not None else written


def test_a_readmitted_record_has_its_label_sender_and_time(spark: SparkSession) -> None:
    topic = "in.by_sender.back"
    late_ms = int(TAKEN_S * 1000) + 3_600_000
    rows = run(
        spark,
        [
            (topic, record(), back(int(TAKEN_S * 1000))),
            (topic, record(), back(late_ms)),
            (topic, record(), back(int(TAKEN_S * 1000), label=None)),
            (topic, MARK.value.decode(), [("timestamp", b"1700000000123")]),
        ],
    )
    ok, late, bare, tick = rows
    assert (ok["topic"], ok["key"]) == ("lab.by_sender", b"29:3:0")
    assert headers(ok) == {"tuple-3": "2,64;21"}
    assert late["topic"] == "quarantine.by_sender", "by when the broker took it first"
    assert "late" in headers(late)["reason"]
    assert bare["topic"] == "quarantine.by_sender", "it must not come and go for ever"
    assert headers(bare)["reason"] == "its label is missing"
    assert tick["topic"] == "time.echo"
    assert tick["value"].decode() == f"{MARK.life}:29:3:3:1700000000123"


def test_what_lab_holds_tells_nothing_of_parked_records(spark: SparkSession) -> None:
    given: list[tuple[str, str, Headers]] = [
        ("in.by_header.al", record(), [("roles", text)]) for text in (b"doctor", b"nurse")
    ]
    number = 30
    rows = run(spark, given, {number: {3: 5}})
    assert [row["topic"] for row in rows] == ["parked.by_header"]


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (BySender(), set()),
        (ByHeader("x"), set()),
        (BY_WARD, {"doctor & icu", "doctor"}),
        (ByExpression(string("icu")), {"icu"}),
        (ByExpression(Call("coalesce", (AttributeRef("allowed"), string("icu")))), {"icu"}),
        (ByExpression(AttributeRef("allowed")), set()),
    ],
)
def test_fixed_texts(rule: Any, texts: set[str]) -> None:
    assert fixed_texts(rule) == texts
