"""Query texts: the characters that they may have, and positions in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from catalog.errors import InvalidInput, Position

# Tab, line feed and carriage return are white space. No other control character has a use here,
# and some of them separate the fields of records in lab topics.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Lines:
    """Turns offsets in a text into lines and columns."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        """The lines of a text. A line feed ends a line."""
        return cls((0, *(match.end() for match in re.finditer("\n", text))))

    def position(self, offset: int) -> Position:
        """The line and column of the character at an offset. Lines and columns begin at 1."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1)


@contextmanager
def placed(position: Position | None) -> Iterator[None]:
    """Give the position to an InvalidInput from the block that has no position."""
    try:
        yield
    except InvalidInput as error:
        if error.position is not None:
            raise
        raise InvalidInput(error.detail, position) from None


def check_text(text: str, max_bytes: int) -> Lines:
    """Check a query text, and give its lines.

    Raises InvalidInput if the text is too long or empty, or has half a character or a control
    character.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        place = Lines.of(text).position(error.start)
        raise InvalidInput("this is half a character (a lone surrogate)", place) from None
    if size > max_bytes:
        raise InvalidInput(f"a query text has at most {max_bytes // 1024} KiB")
    if not text.strip():
        raise InvalidInput("the query text is empty", Position(1, 1))
    lines = Lines.of(text)
    if found := _CONTROL.search(text):
        raise InvalidInput("control characters are not allowed", lines.position(found.start()))
    return lines
