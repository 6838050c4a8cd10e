"""What `secadmin produce` counts as sent, ingest takes, and reads as the same values."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
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
from tests.unit.secfilter.test_ingest import TAKEN_S, run

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
                Relation(n, name, RelationKind.STREAM, SCHEMA, "at", 0, Label.of(n)),
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
    # The first line would tell of another encoding or of an array.
    return [b'{"at":"2026-01-31T12:00:00Z"}', *found]


def read(content: bytes, file_format: FileFormat, written: RecordFormat) -> list[Read]:
    rules = TupleRules(SCHEMA, written, "at", AHEAD_MS, MAX_BYTES)
    now = datetime.fromtimestamp(TAKEN_S, UTC)
    return list(read_tuples(io.BytesIO(content), file_format, rules, lambda: now))


def tuples(spark: SparkSession, name: str, values: Sequence[bytes]) -> list[list[str] | None]:
    """The fields in lab of each record, None for one that is refused."""
    rows = run(spark, [(f"in.{name}", value) for value in values], streams=RUN)
    return [
        bytes(row["value"]).decode().split("\x1f") if row["topic"].startswith("lab.") else None
        for row in rows
    ]


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


@pytest.mark.parametrize("name", FORMATS)
def test_lines(spark: SparkSession, name: str) -> None:
    all_lines, written = lines(), FORMATS[name]
    reads = read(b"\n".join(all_lines), FileFormat.JSON, written)
    raw = [all_lines[row.line - 1].strip() for row in reads]
    made = tuples(spark, name, raw)
    sent = 0
    for row, line, fields in zip(reads, raw, made, strict=True):
        if row.value is not None:
            sent += 1
            assert row.value == line and fields is not None, line
            assert_same(row.value, fields, written)
        elif fields is not None:
            assert row.mistake.startswith(STRICTER), (line, row.mistake)
    assert sent >= 15
    assert len(reads) - sent > 200


@pytest.mark.parametrize("name", FORMATS)
def test_rows_of_a_spreadsheet(spark: SparkSession, name: str) -> None:
    chance, written = random.Random(7), FORMATS[name]
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
    content = file.getvalue().encode("utf-8", "replace")
    sent = [row.value for row in read(content, FileFormat.CSV, written) if row.value is not None]
    assert 50 < len(sent) < 1_400
    for value, fields in zip(sent, tuples(spark, name, sent), strict=True):
        assert fields is not None, value
        assert_same(value, fields, written)
