"""What `secadmin produce` counts as sent, ingest takes, and reads as the same values."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog.label import Label
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream
from catalog.schema import Type
from secadmin.cli.tuple_file import FileFormat, Read, read_tuples
from secadmin.cli.tuple_rules import TupleRules, WrittenNumber, time_us
from tests.bad_inputs import naughty_strings
from tests.integration.secfilter.bad_tuples import MAX_BYTES, NUMBERS, SCHEMA, TIMES, records
from tests.senders import sent
from tests.unit.secfilter.test_ingest import TAKEN_S, Record, run

AHEAD_MS = 60_000
FORMATS = {
    f"{times}_{unknown}": RecordFormat(times=times, unknown_fields=unknown)
    for times, unknown in [
        (TimeFormat.ISO, UnknownFields.QUARANTINE),
        (TimeFormat.ISO, UnknownFields.IGNORE),
        (TimeFormat.EPOCH_S, UnknownFields.QUARANTINE),
        (TimeFormat.EPOCH_MS, UnknownFields.IGNORE),
    ]
}
RUN = IngestRun(
    "ingest-1",
    tuple(
        sent(
            IngestStream(
                Relation(n, name, RelationKind.STREAM, SCHEMA, "at", 0),
                Label.of(n),
                AHEAD_MS,
                MAX_BYTES,
                written,
            )
        )
        for n, (name, written) in enumerate(FORMATS.items())
    ),
)
# Where the command takes less than ingest, which reads what is so long or deep all the same.
STRICTER = ("nested", "a number of", "a name of", "at: a number of a time", "at: no such time")
_EPOCHS = ("0", "-1", "1764040200", "1764040200.5", "1764040200.123456789", "1764040200000", "1e9")


def lines() -> list[bytes]:
    """Lines of all kinds, in one file."""
    found = b"\n".join(record for record in records() if record is not None).split(b"\n")
    own = json.loads(Path(__file__).with_name("field_cases.json").read_text(encoding="utf-8"))
    names = {'"ts"': '"at"', '"sensor"': '"s"', '"value"': '"x"', '"flag"': '"b"'}
    for case in own:
        record = case["record"]
        for name, other in names.items():
            record = record.replace(name, other)
        found += record.encode().split(b"\n")
    found += [f'{{"s":"x","at":{number}}}'.encode() for number in (*_EPOCHS, *NUMBERS)]
    found += [f'{{"at":{number},"u":[{number}]}}'.encode() for number in (*_EPOCHS, *NUMBERS)]
    # The first line would show another encoding, or an array.
    return [b'{"at":"2026-01-31T12:00:00Z"}', *found]


def read(content: bytes, file_format: FileFormat, written: RecordFormat) -> list[Read]:
    rules = TupleRules(SCHEMA, written, "at", AHEAD_MS, MAX_BYTES)
    now = datetime.fromtimestamp(TAKEN_S, UTC)
    return list(read_tuples(io.BytesIO(content), file_format, rules, lambda: now))


Fields = list[str] | None
"""The fields of a record in lab; None for one that is refused."""


def tuples(spark: SparkSession, values: dict[str, list[bytes]]) -> dict[str, list[Fields]]:
    """The fields of each stream's records, by the stream's name; all in one job."""
    records: list[Record] = [(f"in.{name}", value) for name in values for value in values[name]]
    made = [
        bytes(row["value"]).decode().split("\x1f") if row["topic"].startswith("lab.") else None
        for row in run(spark, records, streams=RUN)
    ]
    found: dict[str, list[Fields]] = {name: [] for name in values}
    for (topic, _), fields in zip(records, made, strict=True):
        found[topic.removeprefix("in.")].append(fields)
    return found


def assert_same(sent: bytes, fields: list[str], written: RecordFormat) -> None:
    value: dict[str, Any] = json.loads(sent, parse_float=WrittenNumber)
    for attribute, text in zip(SCHEMA.attributes, fields, strict=True):
        found = value.get(attribute.name)
        match attribute.type:
            case _ if found is None:
                assert text == "\x1e", sent
            case Type.TIMESTAMP:
                assert int(text) == time_us(found, written.times), sent
            case Type.DOUBLE:
                assert float(text) == float(getattr(found, "text", found)), sent
            case Type.STRING:
                assert text == found, sent
            case _:
                assert json.loads(text) == found, sent


@dataclass(frozen=True)
class Produced:
    """What the command read of a file, the records as they were there, and what became of them."""

    reads: list[Read]
    raw: list[bytes]
    fields: list[Fields]


def produced(
    spark: SparkSession, content: bytes, file_format: FileFormat, lines: list[bytes] | None = None
) -> dict[str, Produced]:
    """The file as each of the streams gets it. Without its lines only what is sent is ingested."""
    reads = {name: read(content, file_format, FORMATS[name]) for name in FORMATS}
    if lines is None:
        reads = {name: [row for row in found if row.value] for name, found in reads.items()}
    raw = {
        name: [row.value or b"" if lines is None else lines[row.line - 1].strip() for row in found]
        for name, found in reads.items()
    }
    fields = tuples(spark, raw)
    return {name: Produced(reads[name], raw[name], fields[name]) for name in FORMATS}


@pytest.fixture(scope="module")
def lines_produced(spark: SparkSession) -> dict[str, Produced]:
    all_lines = lines()
    return produced(spark, b"\n".join(all_lines), FileFormat.JSON, all_lines)


@pytest.mark.parametrize("name", FORMATS)
def test_lines(lines_produced: dict[str, Produced], name: str) -> None:
    found, written = lines_produced[name], FORMATS[name]
    sent = 0
    for row, line, fields in zip(found.reads, found.raw, found.fields, strict=True):
        if row.value is not None:
            sent += 1
            assert row.value == line and fields is not None, line
            assert_same(row.value, fields, written)
        elif fields is not None:
            assert row.mistake.startswith(STRICTER), (line, row.mistake)
    assert sent >= 15
    assert len(found.reads) - sent > 200


def spreadsheet() -> bytes:
    """1,500 rows of all kinds of texts, numbers and times."""
    chance = random.Random(7)
    texts = list(islice(naughty_strings(), 300))
    times = [
        *TIMES[5:],
        *_EPOCHS,
        "2026-01-31",
        "2026-01-31 12:00",
        "",
        "9999-12-31T23:59:59-01:00",
    ]
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(SCHEMA.names)
    for _ in range(1_500):
        number, other = chance.choice(NUMBERS), chance.choice(NUMBERS)
        truth = chance.choice(("", "true", "0", "no"))
        time = chance.choice(("2026-01-31T12:00:00Z", chance.choice(times)))
        text = chance.choice(texts)
        row = [time, chance.choice(("", "1", number)), chance.choice(("", other)), text, truth]
        writer.writerow(row)
    return file.getvalue().encode("utf-8", "replace")


@pytest.fixture(scope="module")
def rows_produced(spark: SparkSession) -> dict[str, Produced]:
    return produced(spark, spreadsheet(), FileFormat.CSV)


@pytest.mark.parametrize("name", FORMATS)
def test_rows_of_a_spreadsheet(rows_produced: dict[str, Produced], name: str) -> None:
    found = rows_produced[name]
    assert 50 < len(found.raw) < 1_400
    for value, fields in zip(found.raw, found.fields, strict=True):
        assert fields is not None, value
        assert_same(value, fields, FORMATS[name])
