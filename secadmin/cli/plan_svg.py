"""An explained plan as an SVG image that any browser shows.

It has boxes, lines and text only: no script, no style sheet, no link and no font of its own. All
text is escaped, and its size is bounded.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from catalog.private_file import write_private
from secadmin.cli.plan_explanation import ExplainedNode
from secadmin.cli.safe_text import safe_text

MAX_BOXES = 400
MAX_LINES = 24
_COLUMNS = 44
_CHARACTER, _LINE = 7, 16
_WIDTH = _COLUMNS * _CHARACTER + 24
_GAP_ACROSS, _GAP_DOWN, _MARGIN, _PADDING = 24, 36, 16, 12
# XML allows no such characters, not even escaped.
_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "?")


@dataclass(frozen=True, slots=True)
class _Box:
    """A node and its place: the middle of its column, its depth, and its lines of text."""

    middle: float
    depth: int
    lines: tuple[str, ...]
    below: tuple[_Box, ...]

    def walk(self) -> Iterator[_Box]:
        waiting = [self]
        while waiting:
            box = waiting.pop()
            yield box
            waiting.extend(box.below)


class _Layout:
    """Gives each box without inputs a column. Every other box is in the middle of its inputs.

    Boxes beyond `MAX_BOXES` are left out, and one box says so.
    """

    def __init__(self) -> None:
        self.columns = 0
        self._boxes = 0

    def place(self, node: ExplainedNode, depth: int = 0) -> _Box:
        self._boxes += 1
        if self._boxes >= MAX_BOXES:
            return _Box(self._column(), depth, ("the rest of the plan is left out",), ())
        below = []
        for each in node.inputs:
            below.append(self.place(each, depth + 1))
            if self._boxes >= MAX_BOXES:
                break
        middle = (below[0].middle + below[-1].middle) / 2 if below else self._column()
        return _Box(middle, depth, _lines(node), tuple(below))

    def _column(self) -> float:
        self.columns += 1
        return _MARGIN + (self.columns - 1) * (_WIDTH + _GAP_ACROSS) + _WIDTH / 2


def _lines(node: ExplainedNode) -> tuple[str, ...]:
    found = [node.name, *_wrapped(node.does)]
    for heading, words in node.facts():
        found += _wrapped(f"{heading}: {words}")
    if len(found) > MAX_LINES:
        return (*found[: MAX_LINES - 1], "...")
    return tuple(found)


def _wrapped(text: str) -> list[str]:
    # A text is cut before it is wrapped, so that wrapping is bounded, too.
    cut = safe_text(text[: MAX_LINES * _COLUMNS]).translate(_NO_CHARACTERS)
    return textwrap.wrap(cut, _COLUMNS, subsequent_indent="  ")


def write_images(file: Path, outputs: Mapping[str, ExplainedNode]) -> None:
    """Write an image for each output. Only their owner can read the files.

    If there are several, each file has the name of its output behind that of `file`.
    """
    for name, root in outputs.items():
        own = file if len(outputs) == 1 else file.with_name(f"{file.stem}-{name}{file.suffix}")
        write_private(own, plan_svg(root))


def plan_svg(root: ExplainedNode) -> str:
    """The SVG text of an explained plan, the output at the top and the streams at the bottom."""
    layout = _Layout()
    top = layout.place(root)
    boxes = list(top.walk())
    heights: dict[int, int] = {}
    for box in boxes:
        height = len(box.lines) * _LINE + 2 * _PADDING
        heights[box.depth] = max(heights.get(box.depth, 0), height)
    tops, y = {}, _MARGIN
    for depth in sorted(heights):
        tops[depth] = y
        y += heights[depth] + _GAP_DOWN
    width = 2 * _MARGIN + layout.columns * (_WIDTH + _GAP_ACROSS) - _GAP_ACROSS
    height = y - _GAP_DOWN + _MARGIN
    title = escape(f"{root.name} {_wrapped(root.does)[0] if root.does else ''}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="monospace" font-size="11">'
    )
    parts = [
        head,
        f"<title>{title}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        *(_line(box, below, tops) for box in boxes for below in box.below),
        *(part for box in boxes for part in _drawn(box, tops[box.depth])),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _line(box: _Box, below: _Box, tops: dict[int, int]) -> str:
    """The line from an input up to the box that reads it."""
    end = tops[box.depth] + len(box.lines) * _LINE + 2 * _PADDING
    return (
        f'<line x1="{below.middle:g}" y1="{tops[below.depth]}" x2="{box.middle:g}" y2="{end}" '
        'stroke="#555"/>'
    )


def _drawn(box: _Box, top: int) -> Iterator[str]:
    left = box.middle - _WIDTH / 2
    height = len(box.lines) * _LINE + 2 * _PADDING
    yield (
        f'<rect x="{left:g}" y="{top}" width="{_WIDTH}" height="{height}" rx="4" '
        'fill="#f4f6fa" stroke="#555"/>'
    )
    for number, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        y = top + _PADDING + number * _LINE + 11
        yield f'<text x="{left + _PADDING:g}" y="{y}"{weight}>{escape(line)}</text>'
