"""A figure: what was measured, and what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value; `target` is the most that it should be, None where nothing was promised."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the value is within its target; None without one."""
        return None if self.target is None else self.value <= self.target

    def as_json(self) -> dict[str, object]:
        """The figure as one JSON object."""
        return {
            "name": self.name,
            "value": round(self.value, 3),
            "unit": self.unit,
            "target": self.target,
            "holds": self.holds,
        }


def percentiles(
    name: str, values_ms: Sequence[float], targets: tuple[float | None, float | None, float | None]
) -> list[Figure]:
    """p50, p95 and p99 of latencies in milliseconds, beside their targets."""
    cuts = quantiles(values_ms, n=100)
    pairs = zip((50, 95, 99), targets, strict=True)
    return [Figure(f"{name}, p{p}", cuts[p - 1], "ms", target) for p, target in pairs]


def middle(name: str, values: Sequence[float], unit: str, target: float | None = None) -> Figure:
    """The median of several runs."""
    return Figure(f"{name}, median of {len(values)}", median(values), unit, target)
