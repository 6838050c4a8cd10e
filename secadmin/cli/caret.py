"""Shows the line of a query text that has an error, with a caret under the column."""

from __future__ import annotations

from rich.cells import cell_len

from catalog.errors import Position
from secadmin.cli.safe_text import safe_text

_WIDEST = 100
_MORE = "…"


def caret_lines(text: str, position: Position) -> list[str]:
    """Two lines to print, or none if the position is outside the text.

    >>> print(*caret_lines("SELECT *\\nFROM in9", Position(2, 6)), sep="\\n")
      2 | FROM in9
        |      ^
    """
    lines = text.splitlines()
    if position.line > len(lines):
        return []
    line = lines[position.line - 1]
    # An error at the end of the text has the position after the last character.
    column = min(position.column, len(line) + 1)
    before, after = _shown(line[: column - 1]), _shown(line[column - 1 :])
    before, after = _cut(before, after)
    number = str(position.line)
    margin = " " * len(number)
    return [
        f"  {number} | {before}{after}".rstrip(),
        f"  {margin} | {' ' * cell_len(before)}^",
    ]


def _shown(text: str) -> str:
    return safe_text(text.replace("\t", " "))


def _cut(before: str, after: str) -> tuple[str, str]:
    """If the line is too long, keep only the part around the caret."""
    if len(before) + len(after) <= _WIDEST:
        return before, after
    half = _WIDEST // 2
    if len(before) > half:
        before = _MORE + before[-half:]
    if len(after) > half:
        after = after[:half] + _MORE
    return before, after
