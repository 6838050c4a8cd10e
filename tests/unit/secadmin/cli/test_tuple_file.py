"""Files of tuples."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.schema import Attribute, Schema, Type
from secadmin.cli.cells import convert_cell
from secadmin.cli.tuple_file import FileFormat, Read, format_of, read_tuples

SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        Attribute("symbol", Type.STRING),
        Attribute("price", Type.DOUBLE),
        Attribute("size", Type.BIGINT),
        Attribute("open", Type.BOOLEAN),
    )
)
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


def read(content: str | bytes, file_format: FileFormat = FileFormat.CSV) -> list[Read]:
    raw = content.encode() if isinstance(content, str) else content
    return list(read_tuples(io.BytesIO(raw), file_format, SCHEMA))


def test_rows_become_tuples_and_empty_cells_are_absent() -> None:
    rows = read('ts,symbol,price\n2026-01-31,"a,\nb",1.5\n2026-02-01,,\n')
    assert [json.loads(row.value or b"") for row in rows] == [
        {"ts": "2026-01-31T00:00:00.000000Z", "symbol": "a,\nb", "price": 1.5},
        {"ts": "2026-02-01T00:00:00.000000Z"},
    ]
    assert rows[-1].line == 4


def test_the_position_reaches_the_size_of_the_file() -> None:
    content = "ts,symbol\n2026-01-31,Zürich\n"
    assert read(content)[-1].position == len(content.encode())
    lines = b'{"ts": 1}\n{"ts": 2}'
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
    rows = read('{"ts": 1.0}\n\n[1]\nnonsense\n' + "[" * 100_000, FileFormat.JSON)
    assert [row.value for row in rows] == [b'{"ts": 1.0}', None, None, None]
    assert rows[2].line == 4


def test_the_format_is_told_by_the_extension() -> None:
    assert format_of(Path("a.CSV")) is FileFormat.CSV
    assert format_of(Path("a.jsonl")) is FileFormat.JSON
    with pytest.raises(InvalidInput, match="--format"):
        format_of(Path("a.txt"))
