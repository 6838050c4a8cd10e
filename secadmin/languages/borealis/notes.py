"""What a diagram says and the platform does not use, in words for the author of the diagram."""

from __future__ import annotations

from catalog.errors import Position

MAX_NOTES = 50


class Notes:
    """Collects notes while a diagram is read. Each text is there once, and their number is limited.

    A note is for a part that changes nothing of the results, or whose effect the note names. A part
    that would change the meaning of the diagram is refused and gives no note.
    """

    def __init__(self) -> None:
        self._found: dict[str, Position] = {}

    def add(self, text: str, position: Position) -> None:
        """Note a part of the diagram at its position."""
        self._found.setdefault(text, position)

    def texts(self) -> tuple[str, ...]:
        """The notes in the order in which they were found, each with its line."""
        shown = list(self._found.items())[:MAX_NOTES]
        more = len(self._found) - len(shown)
        last = (f"and {more} more notes",) if more else ()
        return (*(f"line {place.line}: {text}" for text, place in shown), *last)
