"""Levels as the paper has them: vectors with dominance and least upper bound (001 §3, §4).

Nothing here knows of categories. A level is a tuple of parts, one for each conflict class: the name
of a company, T or ⊥.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T, BOTTOM = "T", "⊥"
Level = tuple[str, ...]
Element = TypeVar("Element")


def dominated(low: Level, high: Level) -> bool:
    """Definition 4: low ≼ high."""
    return all(a in (b, BOTTOM) or b == T for a, b in zip(low, high, strict=True))


def lub(levels: Iterable[Level], width: int) -> Level:
    """The least upper bound, class by class."""
    found = [set(parts) - {BOTTOM} for parts in zip(*levels, strict=True)] or [set()] * width
    return tuple(
        BOTTOM if not parts else parts.pop() if len(parts) == 1 else T for parts in map(set, found)
    )


def shepherd(
    elements: Iterable[tuple[Element, Level]], level: Level
) -> Sequence[tuple[Element, Level]]:
    """§4.1: the single level stream of a trusted stream (definitions 5 and 6)."""
    return [(element, own) for element, own in elements if dominated(own, level)]


def printed(level: Level) -> str:
    """As the paper prints a level."""
    return "[" + ", ".join(level) + "]"
