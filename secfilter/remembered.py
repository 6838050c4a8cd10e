"""The objects that wrote the states of a process's last batches, so that it need not read them.

Spark gives an operator its state as a text with each batch. To make an object of the text takes ten
times as long as to write it. Spark keeps the processes of Python, and as a rule the next batch of a
query comes to the same one. There the object that wrote the state can go on. In any other process
the state is read.

An object is found by its operator and by the whole text of its state. So it never goes on from
another state than the one that Spark gives, for example when a batch is run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast


class Stateful(Protocol):
    """What an operator makes of its state."""

    @property
    def more_characters(self) -> int:
        """How much it holds besides the texts of its state, such as pairs: about, in characters."""
        ...

    def restore(self, text: str, /) -> None:
        """Go on with a state."""

    def to_text(self) -> str:
        """The state."""
        ...

    def begin_batch(self) -> None:
        """Count what this batch leaves out, and nothing before."""


_Own = TypeVar("_Own", bound=Stateful)


@dataclass(frozen=True, slots=True)
class _Kept:
    made: Stateful
    characters: int


@dataclass
class Remembered:
    """Objects by their operators and states. They have `most` characters together at most.

    An object takes some times as much memory as its texts. So the one that was kept first is
    forgotten when there is too much, and a larger object is never kept.
    """

    most: int
    _known: dict[tuple[str, str], _Kept] = field(default_factory=dict)
    _characters: int = 0

    def go_on(self, operator: str, text: str | None, empty: Callable[[], _Own]) -> _Own:
        """The object with this state, at the beginning of a batch. Without a text it is empty."""
        known = None if text is None else self._forget((operator, text))
        if known is not None:
            known.begin_batch()
            # Objects of one operator are of one type.
            return cast("_Own", known)
        made = empty()
        if text is not None:
            made.restore(text)
        return made

    def keep(self, operator: str, made: Stateful) -> str:
        """Keep an object at the end of a batch. Gives its state."""
        text = made.to_text()
        # Two classes may hold the same.
        self._forget((operator, text))
        characters = len(text) + made.more_characters
        if characters <= self.most:
            self._known[operator, text] = _Kept(made, characters)
            self._characters += characters
        while self._characters > self.most:
            self._forget(next(iter(self._known)))
        return text

    def _forget(self, key: tuple[str, str]) -> Stateful | None:
        known = self._known.pop(key, None)
        if known is None:
            return None
        self._characters -= known.characters
        return known.made


IN_PROCESS = Remembered(most=4 * 1024 * 1024)
"""What this process has kept. A process of Python runs one batch at a time."""
