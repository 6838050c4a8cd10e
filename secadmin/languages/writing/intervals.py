"""Lengths of time as SQL writes them."""

from __future__ import annotations

_UNITS = (("HOUR", 3_600_000), ("MINUTE", 60_000), ("SECOND", 1_000), ("MILLISECOND", 1))


def interval_text(length_ms: int) -> str:
    """The INTERVAL of a length, in the largest unit that it is a multiple of."""
    unit, factor = next(
        (unit, factor) for unit, factor in _UNITS if length_ms % factor == 0 or factor == 1
    )
    return f"INTERVAL '{length_ms // factor}' {unit}"
