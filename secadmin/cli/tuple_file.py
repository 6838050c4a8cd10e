"""Files of tuples: CSV with a header, or a JSON object a line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TextIO

from catalog.errors import InvalidInput
from catalog.schema import Schema
from secadmin.cli.cells import check_header, convert_row


class FileFormat(StrEnum):
    """How tuples stand in a file."""

    CSV = "csv"
    JSON = "json"


_BY_SUFFIX = {
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
}


@dataclass(frozen=True, slots=True)
class Read:
    """What was read at a line (from 1): a record to send, or why it is none.

    `position` is how far into the file reading has come, in bytes, for a progress bar.
    """

    line: int
    position: int
    value: bytes | None = None
    mistake: str = ""


def format_of(path: Path) -> FileFormat:
    """The format by the file's extension. Raises InvalidInput."""
    try:
        return _BY_SUFFIX[path.suffix.lower()]
    except KeyError:
        raise InvalidInput(
            f"cannot tell how {path} is written; give --format csv or json"
        ) from None


def read_tuples(binary: BinaryIO, file_format: FileFormat, schema: Schema) -> Iterator[Read]:
    """The records in the file, one at a time, whatever its size.

    Raises:
        InvalidInput: The CSV header does not fit the schema, or what follows is not UTF-8.
    """
    if file_format is FileFormat.JSON:
        return _read_json(binary)
    # utf-8-sig: spreadsheets put a mark at the beginning.
    return _read_csv(io.TextIOWrapper(binary, encoding="utf-8-sig", newline=""), schema)


def _read_json(binary: BinaryIO) -> Iterator[Read]:
    position = 0
    for number, line in enumerate(binary, 1):
        position += len(line)
        record = line.strip()
        if not record:
            continue
        try:
            whole = isinstance(json.loads(record), dict)
        except (ValueError, RecursionError):
            whole = False
        if whole:
            yield Read(number, position, record)
        else:
            yield Read(number, position, mistake="is not a JSON object")


def _read_csv(text: TextIO, schema: Schema) -> Iterator[Read]:
    counted = _Counted(text)
    reader = csv.reader(counted, strict=True)
    header: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except UnicodeDecodeError:
            raise InvalidInput(
                f"the file is not text in UTF-8 after line {reader.line_num}"
            ) from None
        except csv.Error as error:
            yield Read(reader.line_num, counted.position, mistake=f"is not CSV: {error}")
            continue
        if not cells:
            continue
        if header is None:
            header = [name.strip() for name in cells]
            check_header(header, schema)
            continue
        yield _row(Read(reader.line_num, counted.position), cells, header, schema)


def _row(at: Read, cells: list[str], header: list[str], schema: Schema) -> Read:
    try:
        row = convert_row(cells, header, schema)
    except ValueError as error:
        return Read(at.line, at.position, mistake=str(error))
    value = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
    return Read(at.line, at.position, value)


class _Counted:
    """Lines of a text with the bytes read so far: `tell` does not work while iterating."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self.position = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._text)
        self.position += len(line) if line.isascii() else len(line.encode())
        return line
