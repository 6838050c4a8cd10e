"""Files of tuples: CSV with a header, or one JSON object on each line."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from catalog.errors import InvalidInput
from secadmin.cli.cells import check_header, record_of
from secadmin.cli.tuple_rules import TupleRules


class FileFormat(StrEnum):
    """The form of the tuples in a file."""

    CSV = "csv"
    JSON = "json"


_BY_SUFFIX = {
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
}


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class Read:
    """The content of a line (from 1): a record to send, or the mistake in it.

    `position` is the number of bytes that have been read, for a progress bar.
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
        raise InvalidInput(f"cannot tell the format of {path}; give --format csv or json") from None


def read_tuples(
    binary: BinaryIO,
    file_format: FileFormat,
    rules: TupleRules,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Read]:
    """The records in the file, one at a time, whatever its size; those to send keep the rules.

    Raises:
        InvalidInput: The file is UTF-16 or one JSON array, the CSV header does not fit the schema,
            or what follows is not UTF-8.
    """
    # A file of the operating system and one in memory alike, to look at the first bytes.
    source = io.BufferedReader(cast("io.RawIOBase", binary))
    if b"\0" in source.peek(4)[:4] or source.peek(2)[:2] in _UTF_16:
        raise InvalidInput("the file looks like UTF-16; save it as UTF-8")
    if file_format is FileFormat.JSON:
        records = _read_json(source)
    else:
        # utf-8-sig: spreadsheets put a mark at the beginning.
        text = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
        records = _read_csv(text, rules)
    yield from (_checked(record, rules, clock) for record in records)


def _checked(read: Read, rules: TupleRules, clock: Callable[[], datetime]) -> Read:
    mistake = rules.mistake_in(read.value, clock()) if read.value is not None else ""
    return replace(read, value=None, mistake=mistake) if mistake else read


def _read_json(source: Iterable[bytes]) -> Iterator[Read]:
    position, first = 0, True
    for number, line in enumerate(source, 1):
        position += len(line)
        record = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
        if not record:
            continue
        if first and record.startswith(b"["):
            raise InvalidInput(
                "the file is a JSON array; write one object on each line, as `jq -c '.[]'` does"
            )
        first = False
        yield Read(number, position, record)


def _read_csv(text: TextIO, rules: TupleRules) -> Iterator[Read]:
    counted = _Counted(text)
    reader = csv.reader(counted, strict=True)
    header: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            if header is None:
                raise InvalidInput(
                    "the file is empty; its first line names the attributes"
                ) from None
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
            check_header(header, rules.schema)
            continue
        yield _row(Read(reader.line_num, counted.position), cells, header, rules)


def _row(at: Read, cells: list[str], header: list[str], rules: TupleRules) -> Read:
    try:
        return replace(at, value=record_of(cells, header, rules.schema, rules.written.times))
    except ValueError as error:
        return replace(at, mistake=str(error))


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
