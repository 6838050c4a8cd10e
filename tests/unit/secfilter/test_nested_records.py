"""Nested attributes at the door: what ingest takes in which form, and what it says of the rest."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from catalog.label import Label
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream
from catalog.schema import (
    ArrayType,
    Attribute,
    AttributeType,
    MapType,
    Schema,
    StructType,
    Type,
    parse_type,
)
from secadmin.cli.tuple_rules import TupleRules
from tests.lanes import number_of
from tests.oracle import nested_values as nested
from tests.senders import sent
from tests.unit.secfilter.test_ingest import CASES as PLAIN_CASES
from tests.unit.secfilter.test_ingest import SCHEMA as PLAIN
from tests.unit.secfilter.test_ingest import Record, headers, run

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("nested_cases.json").read_text(encoding="utf-8")
)
NESTED = (
    Attribute("tags", parse_type("ARRAY<STRING>")),
    Attribute("prices", parse_type("MAP<STRING, DOUBLE>")),
    Attribute("place", parse_type("STRUCT<city STRING, zip BIGINT>")),
    Attribute("items", parse_type("ARRAY<STRUCT<name STRING, n BIGINT, sent TIMESTAMP>>")),
    Attribute("grid", parse_type("ARRAY<ARRAY<BOOLEAN>>")),
)
SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP),
        Attribute("s", Type.STRING, required=True),
        *NESTED,
    )
)
MAX_BYTES = 900_000
_NOW = datetime(2027, 1, 15, 8, 0, 1, tzinfo=UTC)


def _stream(number: int, name: str, schema: Schema, written: RecordFormat) -> IngestStream:
    relation = Relation(number, name, RelationKind.STREAM, schema, "at", 1000)
    return sent(IngestStream(relation, Label.of(0), 60_000, MAX_BYTES, written))


_USUAL, _IGNORING = RecordFormat(), RecordFormat(unknown_fields=UnknownFields.IGNORE)
_EPOCH = RecordFormat(times=TimeFormat.EPOCH_S)
# The plain cases once more, in a stream with a nested attribute that no record has.
_WITH_NESTED = Schema((*PLAIN.attributes, NESTED[0]))
_STREAMS = {
    "one": _stream(1, "one", SCHEMA, _USUAL),
    "ignoring": _stream(2, "ignoring", SCHEMA, _IGNORING),
    "epoch": _stream(3, "epoch", SCHEMA, _EPOCH),
    "plain": _stream(4, "plain", PLAIN, _USUAL),
    "with-nested": _stream(5, "with-nested", _WITH_NESTED, _USUAL),
}


def _only(*names: str) -> IngestRun:
    """The ingest of these streams."""
    return IngestRun("ingest-1", tuple(_STREAMS[name] for name in names))


def _in_lab(row: Row) -> list[str]:
    return bytes(row["value"]).decode().replace("\x1e", "-").split("\x1f")


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, Row]:
    """All cases in one go."""
    given: list[Record] = [("in.one", case["json"].encode()) for case in CASES]
    found = run(spark, given, streams=_only("one"))
    return {case["id"]: row for case, row in zip(CASES, found, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], rows: dict[str, Row]) -> None:
    row = rows[case["id"]]
    if "lab" in case:
        assert (row["topic"], _in_lab(row)) == ("lab.one", case["lab"])
        return
    assert (row["topic"], row["value"]) == ("quarantine.one", case["json"].encode())
    assert headers(row)[0] == ("reason", case["reason"])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_command_line_says_the_same(case: dict[str, Any]) -> None:
    rules = TupleRules(SCHEMA, _USUAL, "at", 60_000, MAX_BYTES)
    mistake = rules.mistake_in(case["json"].encode(), _NOW)
    assert bool(mistake) == ("reason" in case), mistake
    path = case.get("reason", "").partition(":")[0]
    if "[" in path or "." in path:
        assert mistake.partition(":")[0] == path


@pytest.mark.long
def test_plain_attributes_beside_nested_ones_are_read_as_ever(spark: SparkSession) -> None:
    """One stream has only plain attributes, and the other one a nested attribute, too."""
    values = [None if c["json"] is None else c["json"].encode() for c in PLAIN_CASES]
    plain, beside = (
        run(spark, [(f"in.{name}", value) for value in values], streams=_only(name))
        for name in ("plain", "with-nested")
    )
    for case, one, other in zip(PLAIN_CASES, plain, beside, strict=True):
        if one["topic"] == "lab.plain":
            assert other["topic"] == "lab.with-nested", case
            *same, tags = _in_lab(other)
            assert tags == "-"
            # A double may be written in several ways.
            assert [_number(each) for each in same] == [_number(each) for each in _in_lab(one)]
        else:
            assert other["topic"] == "quarantine.with-nested", case
            assert headers(other)[0] == headers(one)[0]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def test_unknown_fields_inside_are_ignored_where_the_stream_says_so(spark: SparkSession) -> None:
    record = (
        b'{"at":"2026-01-31T12:00:00Z","s":"a","new":{"a":[1,"x"]},"place":{"zip":1,"new":[]},'
        b'"items":[{"new":null,"n":1}]}'
    )
    (taken,) = run(spark, [("in.ignoring", record)], streams=_only("ignoring"))
    assert taken["topic"] == "lab.ignoring"
    assert _in_lab(taken)[2:] == ["-", "-", '{"zip":1}', '[{"n":1}]', "-"]


def test_times_inside_are_written_as_the_stream_says(spark: SparkSession) -> None:
    head = b'{"at":1769860800,"s":"a","items":'
    good = head + b'[{"sent":1769860800.5},{"sent":-1}]}'
    wrong = head + b'[{"sent":1769860800.5},{"sent":"2026-01-31T12:00:00Z"}]}'
    far = head + b'[{"sent":99999999999999999}]}'
    taken, refused, outside = run(
        spark, [("in.epoch", each) for each in (good, wrong, far)], streams=_only("epoch")
    )
    sent_at = '[{"sent":"2026-01-31T12:00:00.500000Z"},{"sent":"1969-12-31T23:59:59.000000Z"}]'
    assert _in_lab(taken)[5] == sent_at
    expected = "items[2].sent: expected timestamp as a number (epoch_s), found string"
    assert headers(refused)[0][1] == expected
    assert headers(outside)[0][1] == "items[1].sent: outside the years 0001 to 9999 (UTC)"


HOSTILE = {
    "a long array": b'"tags":[' + b",".join([b'"x"'] * 200_000) + b"]",
    "a wrong end": b'"tags":[' + b",".join([b'"x"'] * 200_000) + b",1]",
    "many keys": b'"prices":{' + b",".join(b'"%d":1' % n for n in range(60_000)) + b"}",
    "a long key": b'"prices":{"' + b"k" * 40_000 + b'":"x"}',
    "open": b'"grid":' + b"[" * 800_000,
    "deep": b'"grid":' + b"[" * 900 + b"]" * 900,
    "deep objects": b'"items":[' + b'{"n":' * 400 + b"1" + b"}" * 400 + b"]",
    "empty structures": b'"items":[' + b",".join([b"{}"] * 250_000) + b"]",
    "digits": b'"place":{"zip":' + b"9" * 5_000 + b"}",
    "names": b'"place":{' + b",".join(b'"n%d":1' % n for n in range(60_000)) + b"}",
}


@pytest.mark.long
def test_no_nested_value_stops_ingest_or_takes_long(spark: SparkSession) -> None:
    head = b'{"at":"2026-01-31T12:00:00Z","s":"a",'
    given: list[Record] = [("in.one", head + value + b"}") for value in HOSTILE.values()]
    # In a stream of numbers a time takes two bytes, and thirty in the held form.
    times = b",".join([b'{"sent":1}'] * 80_000)
    given.append(("in.epoch", b'{"at":1769860800,"s":"a","items":[' + times + b"]}"))
    begun = time.monotonic()
    found = run(spark, given, streams=_only("one", "epoch"))
    # What is not linear takes hours.
    assert time.monotonic() - begun < 300
    rows = dict(zip([*HOSTILE, "times"], found, strict=True))
    taken = {name for name, row in rows.items() if row["topic"].startswith("lab")}
    assert taken == {"a long array", "many keys", "empty structures"}
    reasons = {name: headers(rows[name])[0][1] for name in rows.keys() - taken}
    assert all(len(reason) < 250 for reason in reasons.values()), reasons
    assert reasons["a wrong end"] == "tags[200001]: expected string, found number"
    assert reasons["a long key"] == f"prices['{'k' * 64}']: expected double, found string"
    assert reasons["deep"].startswith("grid[1][1]: expected boolean, found array")
    assert reasons["names"] == "place.n0: unknown field"
    assert reasons["times"].startswith("its nested values have more than")


_TYPES = [each.type for each in NESTED] + [
    parse_type("MAP<STRING, ARRAY<STRUCT<a BIGINT, b MAP<STRING, STRING>>>>"),
    parse_type("STRUCT<a ARRAY<DOUBLE>, b STRUCT<c ARRAY<MAP<STRING, BIGINT>>>>"),
]
_RIGHT: dict[Type, list[Any]] = {
    Type.BOOLEAN: [True, False],
    Type.BIGINT: [0, 7, -(2**63)],
    Type.DOUBLE: [0, 1.5, -2e-7, 12345678.9],
    Type.STRING: ["", "x", 'a"b', "é😀\n"],
    Type.TIMESTAMP: ["2026-01-31T12:00:00Z", "1969-12-31T23:59:59.999999+05:30"],
}
_ATOMS: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63 - 1, 2**63, 1.5, -0.0, 1e308, "", "x", "é😀", '"\\\n', "a\x1fb"),
    *("2026-01-31T12:00:00Z", "2026-01-31", "\x00", "NULL", [], {}),
)


def _right(random: Random, kind: AttributeType) -> Any:
    """A value of the type, with a mistake now and then."""
    if random.random() < 0.06:
        return random.choice(_ATOMS)
    if random.random() < 0.1:
        return None
    match kind:
        case ArrayType(inner):
            return [_right(random, inner) for _ in range(random.randrange(4))]
        case MapType(inner):
            keys = random.sample(["", "a", "b c", "é", "😀", "z`"], random.randrange(4))
            return {key: _right(random, inner) for key in keys}
        case StructType(fields):
            there = [each for each in fields if random.random() < 0.7]
            random.shuffle(there)
            return {each.name: _right(random, each.type) for each in there}
        case _:
            return random.choice(_RIGHT[kind])


def test_random_values_are_taken_exactly_if_the_command_line_takes_them(
    spark: SparkSession,
) -> None:
    """What is taken is in lab in the held form of the same value."""
    schema = Schema(
        (
            Attribute("s", Type.STRING),
            *(Attribute(f"a{number}", kind) for number, kind in enumerate(_TYPES)),
        )
    )
    relation = Relation(1, "one", RelationKind.STREAM, schema, None, 0)
    stream = sent(IngestStream(relation, Label.of(0), 60_000, MAX_BYTES, _USUAL))
    random = Random(22)
    records = [
        json.dumps(
            {f"a{n}": _right(random, kind) for n, kind in enumerate(_TYPES)},
            ensure_ascii=random.random() < 0.5,
        )
        for _ in range(number_of("NESTED_RECORDS", sample=400, long=5_000))
    ]
    given: list[Record] = [("in.one", record.encode()) for record in records]
    rows = run(spark, given, streams=IngestRun("ingest-1", (stream,)))
    rules = TupleRules(schema, _USUAL, None, None, MAX_BYTES)
    taken = 0
    for record, row in zip(records, rows, strict=True):
        mistake = rules.mistake_in(record.encode(), _NOW)
        reason = "" if row["topic"] == "lab.one" else headers(row)[0][1]
        assert bool(mistake) == bool(reason), (record, mistake, reason)
        if not reason:
            taken += 1
            held = json.loads(record)
            wanted = [_form(held[f"a{n}"], kind) for n, kind in enumerate(_TYPES)]
            assert _in_lab(row)[1:] == wanted, record
    assert 0.2 < taken / len(records) < 0.9


def _form(found: Any, kind: AttributeType) -> str:
    value = nested.from_json(_with_times(found, kind), kind)
    return "-" if value is None else nested.to_json(value)


def _with_times(found: Any, kind: AttributeType) -> Any:
    """The value with its times as in results. Zero has no sign (docs/records.md)."""
    if found is None:
        return None
    match kind:
        case ArrayType(inner):
            return [_with_times(each, inner) for each in found]
        case MapType(inner):
            return {key: _with_times(each, inner) for key, each in found.items()}
        case StructType(fields):
            return {f.name: _with_times(found.get(f.name), f.type) for f in fields}
        case Type.TIMESTAMP:
            at = datetime.fromisoformat(found).astimezone(UTC).replace(tzinfo=None)
            return at.isoformat(timespec="microseconds") + "Z"
        case Type.DOUBLE:
            return found + 0.0 if found == 0 else found
    return found
