"""Files of tuples."""

from __future__ import annotations

import codecs
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.record_format import USUAL, RecordFormat, TimeFormat, UnknownFields
from catalog.schema import Attribute, Schema, Type, parse_type
from secadmin.cli.cells import convert_cell
from secadmin.cli.tuple_file import FileFormat, Read, format_of, read_tuples
from secadmin.cli.tuple_rules import TupleRules

SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        Attribute("symbol", Type.STRING),
        Attribute("price", Type.DOUBLE),
        Attribute("size", Type.BIGINT),
        Attribute("open", Type.BOOLEAN),
    )
)
TS = '"2026-01-31T12:00:00Z"'
CELLS = [
    ("true", Type.BOOLEAN, True),
    ("FALSE", Type.BOOLEAN, False),
    ("0", Type.BOOLEAN, False),
    (" 42 ", Type.BIGINT, 42),
    ("+7", Type.BIGINT, 7),
    ("-9223372036854775808", Type.BIGINT, -(2**63)),
    ("1e3", Type.DOUBLE, 1000.0),
    ("5", Type.DOUBLE, 5.0),
    (" kept ", Type.STRING, " kept "),
    ("007", Type.STRING, "007"),
    ("2026-01-31T12:00:00Z", Type.TIMESTAMP, "2026-01-31T12:00:00.000000Z"),
    ("2026-01-31 12:00:00.25", Type.TIMESTAMP, "2026-01-31T12:00:00.250000Z"),
    ("2026-01-31T12:00:00+02:00", Type.TIMESTAMP, "2026-01-31T10:00:00.000000Z"),
    ("2026-01-31", Type.TIMESTAMP, "2026-01-31T00:00:00.000000Z"),
]
WRONG = [
    ("yes?", Type.BOOLEAN),
    ("1.5", Type.BIGINT),
    ("1_000", Type.BIGINT),
    ("٣", Type.BIGINT),
    ("9223372036854775808", Type.BIGINT),
    ("9" * 5000, Type.BIGINT),
    ("nan", Type.DOUBLE),
    ("inf", Type.DOUBLE),
    ("1e999", Type.DOUBLE),
    ("1_0.0", Type.DOUBLE),
    ("1700000000", Type.TIMESTAMP),
    ("2026-02-30", Type.TIMESTAMP),
    ("0001-01-01T00:00:00+14:00", Type.TIMESTAMP),
    ("yesterday", Type.TIMESTAMP),
]


@pytest.mark.parametrize(("text", "kind", "value"), CELLS)
def test_cells(text: str, kind: Type, value: object) -> None:
    assert convert_cell(text, kind) == value


@pytest.mark.parametrize(("text", "kind"), WRONG)
def test_cells_that_do_not_fit(text: str, kind: Type) -> None:
    with pytest.raises(ValueError, match="is not"):
        convert_cell(text, kind)


NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR_MS = 3_600_000


def read(
    content: str | bytes, file_format: FileFormat = FileFormat.CSV, written: RecordFormat = USUAL
) -> list[Read]:
    raw = content.encode() if isinstance(content, str) else content
    rules = TupleRules(SCHEMA, written, "ts", HOUR_MS, 1_000)
    return list(read_tuples(io.BytesIO(raw), file_format, rules, lambda: NOW))


def test_rows_become_tuples_and_empty_cells_are_absent() -> None:
    rows = read('ts,symbol,price\n2026-01-31,"a,\nb",1.5\n2026-02-01,,\n')
    assert [json.loads(row.value or b"") for row in rows] == [
        {"ts": "2026-01-31T00:00:00.000000Z", "symbol": "a,\nb", "price": 1.5},
        {"ts": "2026-02-01T00:00:00.000000Z"},
    ]
    assert rows[-1].line == 4


def test_a_cell_of_a_nested_attribute_is_json() -> None:
    schema = Schema(
        (
            Attribute("tags", parse_type("ARRAY<STRING>")),
            Attribute("place", parse_type("STRUCT<zip BIGINT, at TIMESTAMP>")),
        )
    )
    rules = TupleRules(schema, USUAL, None, None, 1_000)
    text = (
        'tags,place\n"[""a"", null]","{""zip"": 1, ""at"": ""2026-01-31T12:00:00Z""}"\n'
        'a,\n[1],\n,"{""zip"": 1.5}"\n'
    )
    rows = list(read_tuples(io.BytesIO(text.encode()), FileFormat.CSV, rules, lambda: NOW))
    assert json.loads(rows[0].value or b"") == {
        "tags": ["a", None],
        "place": {"zip": 1, "at": "2026-01-31T12:00:00Z"},
    }
    mistakes = [
        "is not JSON",
        "tags[1]: expected string, found number",
        "place.zip: expected bigint",
    ]
    for row, mistake in zip(rows[1:], mistakes, strict=True):
        assert mistake in row.mistake


def test_the_position_reaches_the_size_of_the_file() -> None:
    content = "ts,symbol\n2026-01-31,Zürich\n"
    assert read(content)[-1].position == len(content.encode())
    lines = b'{"ts": "2026-01-31T12:00:00Z"}\n{"ts": 2}'
    assert read(lines, FileFormat.JSON)[-1].position == len(lines)


def test_a_mark_at_the_beginning_and_windows_lines_are_understood() -> None:
    rows = read(b"\xef\xbb\xbfts,price\r\n2026-01-31,2\r\n\r\n")
    assert [json.loads(row.value or b"")["price"] for row in rows] == [2.0]


def test_a_row_that_does_not_fit_is_told_and_the_next_is_read() -> None:
    rows = read("ts,price\nnever,1\n2026-01-31\n,1\n2026-01-31,3\n")
    assert [row.mistake for row in rows] == [
        "ts: 'never' is not a time as 2026-01-31T12:00:00Z",
        "1 cells under 2 columns",
        "ts is required and empty",
        "",
    ]
    assert [row.line for row in rows] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("header", "told"),
    [("ts,colour", "'colour' is not an attribute"), ("ts,ts", "twice"), ("symbol", "ts")],
)
def test_a_header_that_does_not_fit_is_refused(header: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read(f"{header}\n1,2\n")


def test_json_lines_go_as_they_are() -> None:
    good = f'{{"ts": {TS}, "price": 1.50}}'
    rows = read(f"{good}\n\n[1]\nnonsense\n{'[' * 900}", FileFormat.JSON)
    assert [row.value for row in rows] == [good.encode(), None, None, None]
    assert [row.mistake.split(":")[0] for row in rows[1:3]] == [
        "is not a JSON object",
        "not one JSON object at byte 1",
    ]
    assert rows[2].line == 4


@pytest.mark.parametrize(
    ("fields", "mistake"),
    [
        ('"price": NaN', "NaN is not JSON; leave the field out, or write null"),
        ('"price": -Infinity', "-Infinity is not JSON; leave the field out, or write null"),
        ('"price": 1e400', "price: out of range of a double"),
        ('"price": "1.5"', "price: expected double, found string"),
        ('"size": 5.0', "size: expected bigint, found number with a fraction or an exponent"),
        ('"size": 9223372036854775808', "size: out of range of 64 bits"),
        ('"size": true', "size: expected bigint, found boolean"),
        ('"open": 1', "open: expected boolean, found number"),
        ('"size": 1, "size": 1', "size: given twice"),
        ('"size": 1, "\\u0073ize": 1', "size: given twice"),
        ('"symbol": "\\ud83d"', "symbol: half a surrogate pair"),
        ('"symbol": "a\\u001fb"', "symbol: holds the character U+001E or U+001F"),
        ('"symbol": ["a"]', "symbol: expected string, found array"),
        ('"colour": 1', "colour: unknown field"),
        ('"symbol": "' + "x" * 1_000 + '"', "has 1044 bytes, and the stream takes 1000"),
        ('"size": 1} {', "not one JSON object at byte 43: Extra data"),
    ],
)
def test_a_line_that_the_stream_would_refuse_is_not_sent(fields: str, mistake: str) -> None:
    [row] = read(f'{{"ts": {TS}, {fields}}}', FileFormat.JSON)
    assert (row.value, row.mistake) == (None, mistake)


@pytest.mark.parametrize(
    ("time", "mistake"),
    [
        ('"2026-01-31T12:00:00"', "ts: not a time in ISO 8601 with a zone; write it"),
        ('"2016-12-31T23:59:60Z"', "ts: a leap second, which is no time"),
        ('"2026-02-30T12:00:00Z"', "ts: no such time: the day or the second does not exist"),
        ('"2026-01-31T12:00:00+18:01"', "ts: no such time: the zone does not exist"),
        ('"9999-12-31T23:59:59-01:00"', "ts: outside the years 0001 to 9999 (UTC)"),
        ('"2026-03-01T01:00:01Z"', "ts: more than 3600 s ahead of now"),
        ("1769860800", "ts: expected timestamp as a string (iso), found number"),
        ("null", "ts: required, and null or absent"),
    ],
)
def test_a_time_that_the_stream_would_refuse_is_not_sent(time: str, mistake: str) -> None:
    [row] = read(f'{{"ts": {time}}}', FileFormat.JSON)
    assert row.value is None and row.mistake.startswith(mistake)


def test_unknown_fields_are_sent_where_the_stream_ignores_them() -> None:
    ignoring = RecordFormat(unknown_fields=UnknownFields.IGNORE)
    line = f'{{"ts": {TS}, "x": {{"y": [1, null]}}}}'
    twice = f'{{"ts": {TS}, "x": {{"y": 1, "y": 2}}}}'
    rows = read(f"{line}\n{twice}", FileFormat.JSON, ignoring)
    assert [row.value for row in rows] == [line.encode(), None]


@pytest.mark.parametrize(
    ("written", "cell", "sent"),
    [
        (TimeFormat.EPOCH_S, "2026-01-31T12:00:00.25Z", "1769860800.25"),
        (TimeFormat.EPOCH_S, "1769860800.5", "1769860800.5"),
        (TimeFormat.EPOCH_MS, "2026-01-31 12:00:00.000001", "1769860800000.001"),
        (TimeFormat.EPOCH_MS, " -1 ", "-1"),
        (TimeFormat.EPOCH_US, "2026-01-31", "1769817600000000"),
    ],
)
def test_cells_of_times_in_a_stream_of_numbers(written: TimeFormat, cell: str, sent: str) -> None:
    [row] = read(f"ts\n{cell}\n", FileFormat.CSV, RecordFormat(times=written))
    assert row.value == f'{{"ts":{sent}}}'.encode()


def test_a_mark_before_the_first_line_is_left_out() -> None:
    line = f'{{"ts":{TS}}}'.encode()
    rows = read(codecs.BOM_UTF8 + line + b"\n" + codecs.BOM_UTF8 + line, FileFormat.JSON)
    assert [row.value for row in rows] == [line, None]


@pytest.mark.parametrize("file_format", FileFormat)
@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_of_another_encoding_is_refused(codec: str, file_format: FileFormat) -> None:
    with pytest.raises(InvalidInput, match="UTF-16; save it as UTF-8"):
        read(f'{{"ts":{TS}}}'.encode(codec), file_format)


def test_a_file_that_is_one_array_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is a JSON array; write one object on each line"):
        read(f'\n [{{"ts":{TS}}},\n{{"ts":{TS}}}]', FileFormat.JSON)


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_csv_without_a_header_is_told(content: str) -> None:
    with pytest.raises(InvalidInput, match="empty; its first line names the attributes"):
        read(content, FileFormat.CSV)


def test_the_format_is_told_by_the_extension() -> None:
    assert format_of(Path("a.CSV")) is FileFormat.CSV
    assert format_of(Path("a.jsonl")) is FileFormat.JSON
    with pytest.raises(InvalidInput, match="--format"):
        format_of(Path("a.txt"))
