"""Levels and floors in ingest: each form of a level rule, what has no known level, and what a
sender's floor adds (001 §3).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.conflict_class import ConflictClass
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.label_rule import ByExpression, ByHeader, BySender, LabelRule
from catalog.level_rule import CompanyRule, LevelRule
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream, Sender
from catalog.schema import Attribute, Schema, Type
from secfilter.ingest import ingest
from secfilter.lab import HEADERS_TYPE

SCHEMA = Schema((Attribute("n", Type.BIGINT), Attribute("of", Type.STRING)))
COI1 = ConflictClass(1, "COI1", 3, {"1": 4, "Company 2": 70})
COI2 = ConflictClass(2, "COI2", 5, {"A": 200})
SOURCE, DOCTOR = Label.of(1), Label.of(66)
READMITTED = Label.of(1, 66, 300)


def text(value: str) -> Literal:
    return Literal(value, Type.STRING)


OF = ByExpression(AttributeRef("of"))
BIG = ByExpression(
    Call("case", (Call(">", (AttributeRef("n"), Literal(9, Type.BIGINT))), text("T"), text("A")))
)


def stream(
    number: int,
    name: str,
    *rules: BySender | ByExpression,
    rule: LabelRule | None = None,
) -> IngestStream:
    classes = (COI1, COI2)[: len(rules)]
    level = LevelRule(
        tuple(CompanyRule(of.id, each) for of, each in zip(classes, rules, strict=True))
    )
    senders = (
        Sender(number * 10, f"in.{name}.al", parts=("1", "A")[: len(rules)]),
        Sender(number * 10 + 1, f"in.{name}.bo", parts=(None, None)[: len(rules)]),
        Sender(number * 10 + 2, f"in.{name}.cy", parts=("T", "⊥")[: len(rules)]),
        Sender(number * 10 + 9, f"in.{name}.back", readmits=True, parts=(None, None)[: len(rules)]),
    )
    return IngestStream(
        *(Relation(number, name, RelationKind.STREAM, SCHEMA, None, 0), SOURCE, 0, 10_000),
        senders=senders,
        rule=rule,
        texts=(("doctor", DOCTOR),),
        level_rule=level if rules else None,
        conflict_classes=classes,
    )


def with_floors(stream: IngestStream, **floors: Label) -> IngestStream:
    """The stream with floors of senders, by the ends of their topics."""
    senders = (
        replace(each, floor=floors.get(each.topic.split(".")[-1], Label()))
        for each in stream.senders
    )
    return replace(stream, senders=tuple(senders))


FLOOR = Label.of(2, 140)
RUN = IngestRun(
    "ingest-1",
    (
        stream(1, "plain"),
        stream(2, "constant", ByExpression(text("1"))),
        stream(3, "attribute", OF, BIG),
        stream(4, "sender", BySender(), BySender()),
        stream(5, "both", OF, BySender(), rule=ByHeader("roles")),
        with_floors(stream(6, "floored"), al=FLOOR, cy=Label.of(1)),
        with_floors(stream(7, "floors", BySender()), al=FLOOR, cy=Label.of(3, 300)),
        with_floors(stream(8, "ruled", rule=ByHeader("roles")), al=FLOOR),
    ),
)


def wire(*labels: Label | int) -> str:
    bits = [each if isinstance(each, int) else each.categories() for each in labels]
    every = [at for each in bits for at in ([each] if isinstance(each, int) else each)]
    return "lab " + Label.of(*every).to_wire()


def record(n: int = 1, of: str | None = "1") -> str:
    written = "null" if of is None else f'"{of}"'
    return f'{{"n":{n},"of":{written}}}'


BACK = [("timestamp", b"5"), ("sender", b"50"), ("label", READMITTED.to_wire().encode())]
CASES: list[tuple[str, str, str, list[tuple[str, bytes]], str]] = [
    ("no level rule", "in.plain.al", record(), [], wire(1)),
    ("a constant", "in.constant.al", record(of=None), [], wire(1, 4)),
    ("a company", "in.attribute.al", record(), [], wire(1, 4, 200)),
    ("two words", "in.attribute.al", record(of="Company 2"), [], wire(1, 70, 200)),
    ("T and a condition", "in.attribute.al", record(10, "T"), [], wire(1, 3, 5)),
    ("no company", "in.attribute.al", record(of="_"), [], wire(1, 200)),
    ("bottom", "in.attribute.al", record(of="⊥"), [], wire(1, 200)),
    ("of another class", "in.attribute.al", record(of="A"), [], "COI1 has no company of the name"),
    ("other case", "in.attribute.al", record(of="t"), [], "COI1 has no company of the name"),
    ("empty", "in.attribute.al", record(of=""), [], "COI1 has no company of the name"),
    ("null", "in.attribute.al", record(of=None), [], "COI1 needs a company, T or _"),
    ("the sender's level", "in.sender.al", record(), [], wire(1, 4, 200)),
    ("a sender above", "in.sender.cy", record(), [], wire(1, 3)),
    ("a sender without one", "in.sender.bo", record(), [], "COI1 needs a company, T or _"),
    ("roles too", "in.both.al", record(), [("roles", b"doctor")], wire(1, 66, 4, 200)),
    ("new roles", "in.both.al", record(), [("roles", b"nurse")], "parked"),
    ("new roles of no company", "in.both.al", record(of="X"), [("roles", b"x")], "COI1 has no"),
    # Its label has more words than any label that is known here.
    ("sent again", "in.both.back", record(), BACK, wire(READMITTED, 4, 200)),
    ("a floor", "in.floored.al", record(), [], wire(1, FLOOR)),
    ("a floor within the label", "in.floored.cy", record(), [], wire(1)),
    ("another sender's floor", "in.floored.bo", record(), [], wire(1)),
    ("a floor and a level", "in.floors.al", record(), [], wire(1, 4, FLOOR)),
    ("a floor that has the level", "in.floors.cy", record(), [], wire(1, 3, 300)),
    ("a floor, and roles", "in.ruled.al", record(), [("roles", b"doctor")], wire(1, 66, FLOOR)),
    ("a floor, and new roles", "in.ruled.al", record(), [("roles", b"nurse")], "parked"),
    # The platform has put the floor of its sender into the label.
    ("sent again, with a floor", "in.ruled.back", record(), BACK, wire(READMITTED)),
    ("sent again, no company", "in.both.back", record(of="X"), BACK, "COI1 has no company"),
]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> list[Row]:
    rows = [
        (topic, b"k", value.encode(), 3, n, 1_800_000_000.5, headers)
        for n, (_, topic, value, headers, _) in enumerate(CASES)
    ]
    frame = spark.createDataFrame(
        rows,
        "topic string, key binary, value binary, partition int, offset bigint, timestamp double, "
        f"headers {HEADERS_TYPE}",
    ).withColumn("timestamp", fn.col("timestamp").cast("timestamp"))
    return list(ingest(frame.coalesce(1), RUN, {}).collect())


@pytest.mark.parametrize("at", range(len(CASES)), ids=[case[0] for case in CASES])
def test_case(results: list[Row], at: int) -> None:
    _, topic, value, _, wanted = CASES[at]
    row, name = results[at], topic.split(".")[1]
    found = {h["key"]: bytes(h["value"]).decode() for h in row["headers"]}
    if wanted.startswith("lab "):
        assert row["topic"] == f"lab.{name}"
        assert f"lab {found['tuple-3'].partition(';')[0]}" == wanted
    elif wanted == "parked":
        assert row["topic"] == f"parked.{name}"
    else:
        assert (row["topic"], bytes(row["value"]).decode()) == (f"quarantine.{name}", value)
        assert wanted in found["reason"]
