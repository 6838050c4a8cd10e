"""Labelled records: what is written is read back, and what is no label is not seen."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from secfilter.failures import describe
from secfilter.lab import (
    HEADERS_TYPE,
    UNKNOWN_CATEGORY,
    decode_value,
    encode_value,
    read_lab,
)

TYPES = (Type.STRING, Type.BIGINT, Type.DOUBLE, Type.BOOLEAN, Type.TIMESTAMP)
SCHEMA = Schema(tuple(Attribute(t.value, t) for t in TYPES))
ONE = Schema((Attribute("s", Type.STRING),))
BID = Schema((Attribute("item", Type.STRING), Attribute("price", Type.BIGINT)))
BIDS = (b"a\x1f7", b"a\x1f2", b"b\x1f1", b"b\x1f8")
Pairs = list[tuple[str, bytes | None]]
TUPLE = "tuple-3"


def relation(*, public: bool = False, kind: RelationKind = RelationKind.STREAM) -> Relation:
    return Relation(9, "r", kind, ONE, None, 0, public)


def seen(
    spark: SparkSession,
    wanted: Relation,
    headers: Pairs,
    key: bytes | None = None,
    *,
    bits: tuple[int, ...] = (),
    registered: int | None = None,
) -> dict[str, Any] | None:
    """The tuple that a record with this key and these headers becomes, if it is seen.

    A tuple of the relation can carry the categories `bits`.
    """
    found = read(spark, wanted, {4: headers}, bits, key, registered)
    return found[0].asDict() if found else None


def read(
    spark: SparkSession,
    wanted: Relation,
    headers: Mapping[int, Pairs],
    bits: tuple[int, ...],
    key: bytes | None = None,
    registered: int | None = None,
    *,
    senders: bool = False,
) -> list[Row]:
    """The tuples that are seen of records with these headers, which are by their offset."""
    rows = [(key, b"text", 0, offset, each) for offset, each in headers.items()]
    columns = f"key binary, value binary, partition int, offset bigint, headers {HEADERS_TYPE}"
    records = spark.createDataFrame(rows, columns).coalesce(1)
    reach = Label.of(*bits)
    return list(read_lab(records, wanted, reach, None, registered, senders=senders).collect())


def offset_of(row: Row) -> int:
    """Of a tuple whose record has no key."""
    return int(str(row["__id"]).rpartition(":")[2])


LABELS: list[tuple[tuple[int, ...], bytes | None, list[int] | None]] = [
    ((0, 1), b"1", [1]),
    ((0, 1), b"3", [3]),
    ((63,), b"-9223372036854775808", [-(2**63)]),
    ((70,), b"0,64", [64]),
    ((70,), b"0,-1", None),
    ((70,), b"1,64", None),
    ((0, 70), b"1", [1, 0]),
    ((0, 70), b"1,0", [1, 0]),
    ((0, 70), b"0,0", None),
    ((0, 70), b"1,0,0", None),
    ((0, 70), b"1,0,1", None),
    ((0, 70), b"1,", None),
    ((0, 70), b",1", None),
    ((0, 70), b"1,x", None),
    ((0,), b"1,0", None),
    ((0,), b"0", None),
    ((0,), b"2", None),
    ((0,), b"", None),
    ((0,), b"zz", None),
    ((0,), b" 1", None),
    ((0,), b"1 ", None),
    ((0,), b"+1", None),
    ((0,), b"01", None),
    ((0,), b"1.0", None),
    ((0,), b"18446744073709551617", None),
    ((0,), b"\xff", None),
    ((0,), None, None),
    ((1000,), Label.of(1000).to_wire().encode(), [Label.of(1000).word(15)]),
    ((1000,), Label.of(1001).to_wire().encode(), None),
]


@pytest.fixture(scope="module")
def seen_labels(spark: SparkSession) -> dict[int, list[int]]:
    """The words of each label in `LABELS` that is seen, by its place there. One job for a reach."""
    found: dict[int, list[int]] = {}
    for bits in {bits for bits, _, _ in LABELS}:
        headers: dict[int, Pairs] = {
            at: [(TUPLE, wire)] for at, (reach, wire, _) in enumerate(LABELS) if reach == bits
        }
        for row in read(spark, relation(), headers, bits):
            words = [value for name, value in row.asDict().items() if "label" in name]
            found[offset_of(row)] = words
    return found


@pytest.mark.parametrize("at", range(len(LABELS)), ids=lambda at: str(LABELS[at][:2]))
def test_label(seen_labels: dict[int, list[int]], at: int) -> None:
    assert seen_labels.get(at) == LABELS[at][2]


def only(key: str, value: bytes) -> Pairs:
    return [(key, value)]


MISPLACED: list[Pairs] = [
    [],
    [("version", b"2"), ("label", b"1")],
    [("x", b""), (TUPLE, b"1")],
    [("label", b"1"), (TUPLE, b"1")],
    *(only(key, b"1") for key in ("Tuple-3", "tuple", "tuple-2", "tuple-4", "tuple-33", "")),
    *(only(TUPLE, b"%b1;7" % before) for before in (b";", b"x;", b"2;", b" ", b"0;")),
]


def test_the_label_is_in_the_first_header_of_this_version(spark: SparkSession) -> None:
    assert read(spark, relation(), dict(enumerate(MISPLACED)), (0,)) == []
    right: Pairs = [(TUPLE, b"1")]
    assert len(read(spark, relation(), {0: MISPLACED[0], 1: right}, (0,))) == 1


LATER = [
    (Label.of(0), 5, True),
    (Label.of(4), 5, False),
    (Label.of(0, 5), 5, None),
    (Label.of(63), 5, None),
    (Label.of(63), 63, None),
    (Label.of(63), 64, False),
    (Label.of(64), 64, None),
    (Label.of(64, 70), 70, None),
    (Label.of(64, 69), 70, False),
    (Label.of(64, 200), 70, None),
    (Label.of(0, 5000), 70, None),
    (Label.of(), 0, False),
    (Label.of(0), 0, True),
]


@pytest.mark.parametrize(("label", "registered", "visible"), LATER)
def test_a_category_that_nobody_knew_yet_fails_the_batch(
    spark: SparkSession, label: Label, registered: int, visible: bool | None
) -> None:
    """None: it fails. A category that is known and cannot be here only hides its tuple."""
    given: Pairs = [(TUPLE, label.to_wire().encode())]
    if visible is None:
        with pytest.raises(PySparkException) as failed:
            seen(spark, relation(), given, bits=(0,), registered=registered)
        assert describe(failed.value).startswith(UNKNOWN_CATEGORY)
    else:
        found = seen(spark, relation(), given, bits=(0,), registered=registered)
        assert (found is not None) is visible


def test_what_is_no_label_fails_nothing(spark: SparkSession) -> None:
    wires = (None, b"", b"x", b"1,x", b"1,", b"99999999999999999999", b"-")
    headers: dict[int, Pairs] = {at: [(TUPLE, wire)] for at, wire in enumerate(wires)}
    assert read(spark, relation(), headers, (0,), registered=1) == []


def seen_of(
    spark: SparkSession, wanted: Relation, wires: Sequence[bytes], bits: tuple[int, ...]
) -> list[bytes]:
    """Which of these labels are seen."""
    headers: dict[int, Pairs] = {at: [(TUPLE, wire)] for at, wire in enumerate(wires)}
    return [wires[offset_of(row)] for row in read(spark, wanted, headers, bits)]


@pytest.mark.parametrize("bits", [(), (0,)], ids=["public", "mixed"])
def test_a_public_stream_carries_the_empty_label_alone(
    spark: SparkSession, bits: tuple[int, ...]
) -> None:
    assert seen_of(spark, relation(public=True), [b"0", b"1", b""], bits) == [b"0"]


def test_an_output_over_public_streams_may_carry_either(spark: SparkSession) -> None:
    output = relation(public=True, kind=RelationKind.OUTPUT)
    assert seen_of(spark, output, [b"0", b"1", b"2"], (0,)) == [b"0", b"1"]


SENDERS: dict[bytes, int | None] = {
    b"1;7": 7,
    b"1;9223372036854775807": 2**63 - 1,
    b"1": None,
    b"1;": None,
    b"1;x": None,
    b"1;9223372036854775808": None,
}


def test_the_sender_is_behind_the_label(spark: SparkSession) -> None:
    headers: dict[int, Pairs] = {at: [(TUPLE, wire)] for at, wire in enumerate(SENDERS)}
    rows = read(spark, relation(), headers, (0,), senders=True)
    found = {offset_of(row): row["__sender"] for row in rows}
    assert found == dict(enumerate(SENDERS.values()))
    assert "__sender" not in read(spark, relation(), headers, (0,))[0].asDict()


def test_lineage(spark: SparkSession) -> None:
    headers: Pairs = [(TUPLE, b"1")]
    stream, output = relation(), relation(kind=RelationKind.OUTPUT)
    for kind in (stream, output):
        assert (seen(spark, kind, headers, b"w0", bits=(0,)) or {})["__id"] == "9:w0"
        assert (seen(spark, kind, headers, bits=(0,)) or {})["__id"] == "9:0:4"


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1e\x1f"))
integers = st.integers(-(2**63), 2**63 - 1)
tuples = st.tuples(
    st.none() | texts,
    st.none() | integers,
    st.none() | st.floats(allow_nan=False),
    st.none() | st.booleans(),
    st.none() | integers,
)


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(tuples, min_size=50, max_size=100))
def test_values_are_read_back_as_they_were(
    spark: SparkSession, rows: list[tuple[Any, ...]]
) -> None:
    columns = "string string, bigint bigint, double double, boolean boolean, raw bigint"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    frame = frame.withColumn("timestamp", fn.timestamp_micros("raw"))
    written = frame.select(encode_value(SCHEMA).cast("binary").alias("value"))
    read = written.select(*decode_value(fn.col("value").cast("string"), SCHEMA))
    got = read.withColumn("timestamp", fn.unix_micros("timestamp")).collect()
    assert [tuple(row) for row in got] == rows
    assert all(
        math.copysign(1, a[2]) == math.copysign(1, b[2])
        for a, b in zip(got, rows, strict=True)
        if b[2] is not None
    )


def test_a_single_attribute(spark: SparkSession) -> None:
    rows = [(value,) for value in ("", "a", None, "-")]
    frame = spark.createDataFrame(rows, "s string").coalesce(1)
    written = frame.select(encode_value(ONE).alias("v"))
    assert list(map(tuple, written.select(*decode_value(fn.col("v"), ONE)).collect())) == rows


def test_conditions_do_not_take_the_record_apart_once_more(spark: SparkSession) -> None:
    rows = [(None, value, 0, at, [(TUPLE, b"1")]) for at, value in enumerate(BIDS)]
    columns = f"key binary, value binary, partition int, offset bigint, headers {HEADERS_TYPE}"
    records = spark.createDataFrame(rows, columns).coalesce(1)
    bids = Relation(9, "r", RelationKind.STREAM, BID, None, 0)

    dear = read_lab(records, bids, Label.of(0)).where("price > 5 and item <> 'b' or price = 1")

    assert [tuple(row)[:2] for row in dear.select("item", "price", "__label_0").collect()] == [
        ("a", 7),
        ("b", 1),
    ]
    plan: Any = dear._jdf.queryExecution().optimizedPlan()
    conditions = [line for line in plan.toString().splitlines() if "Filter" in line]
    assert conditions
    assert not [line for line in conditions if "split(" in line]
