"""Query texts: what any of them may hold, and the places in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from catalog.errors import InvalidInput, Position

# Tab, line feed and carriage return are white space; no other control character has a use here,
# and some mark fields on the labelled topics.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Lines:
    """Turns offsets in a text into lines and columns."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        """The lines of a text, which line feeds end."""
        return cls((0, *(match.end() for match in re.finditer("\n", text))))

    def position(self, offset: int) -> Position:
        """The line and column, from 1, of the character at an offset from 0."""
        line = bisect_right(self.starts, offset)
        return Position(line, offset - self.starts[line - 1] + 1)


@contextmanager
def placed(position: Position | None) -> Iterator[None]:
    """Give the place to an InvalidInput that has none of its own."""
    try:
        yield
    except InvalidInput as error:
        if error.position is not None:
            raise
        raise InvalidInput(error.detail, position) from None


def check_text(text: str, max_bytes: int) -> Lines:
    """The lines of a text that a front end may read.

    Raises InvalidInput for one that is too long, empty, no Unicode, or holds control characters.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        place = Lines.of(text).position(error.start)
        raise InvalidInput("half a character (a lone surrogate)", place) from None
    if size > max_bytes:
        raise InvalidInput(f"a query text has at most {max_bytes // 1024} KiB")
    if not text.strip():
        raise InvalidInput("the query text is empty", Position(1, 1))
    lines = Lines.of(text)
    if found := _CONTROL.search(text):
        raise InvalidInput("a control character", lines.position(found.start()))
    return lines
