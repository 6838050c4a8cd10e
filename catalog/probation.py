"""Which executions may have ended their engine, how long they run alone, and when one is parked.

An engine that dies tells nobody why. So what has changed since it was last well is suspected, and
runs alone for a while. Only what dies alone is blamed: a hostile query never gets another parked.

Time is counted in beats of an engine (`catalog.pulse`), for no clock is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# A beat comes every two seconds: two minutes, half a minute and an hour.
HEALTHY_BEATS = 60
PROVEN_BEATS = 15
LONG_LIFE_BEATS = 1_800
DEATHS_TO_PARK = 3
# What doubles doubles so often at most: then it is days.
_DOUBLINGS = 12
PARKED = (
    f"its engine ended {DEATHS_TO_PARK} times while it ran alone: it needs too much memory, or "
    "never ends; change it, or start it again"
)


def suspects(changed: Mapping[int, int], beats: int, deaths: int) -> frozenset[int]:
    """The executions that are suspected when their engine has died.

    `changed` is at which beat of the engine each was started or changed, `beats` is its last beat.
    It had died `deaths` times before, since it last lived long. Each of these deaths lets us look
    back twice as far, so what kills slowly is suspected in the end.
    """
    window = _doubled(HEALTHY_BEATS, deaths)
    return frozenset(execution for execution, at in changed.items() if beats - at < window)


def proven_after(trials: int) -> int:
    """How many beats an execution runs alone, after so many trials that it survived."""
    return _doubled(PROVEN_BEATS, trials)


def _doubled(beats: int, times: int) -> int:
    return beats << min(times, _DOUBLINGS)


def is_parked(deaths: int) -> bool:
    """Whether an execution whose engine died so often while it was alone is started no more."""
    return deaths >= DEATHS_TO_PARK


@dataclass(frozen=True, slots=True)
class Waiting:
    """An execution that waits to run alone: how often it died alone, how often it survived."""

    execution: int
    deaths: int
    trials: int


def next_alone(waiting: Iterable[Waiting]) -> int | None:
    """The execution that runs alone next: what has died least comes first."""
    order = sorted(waiting, key=lambda each: (each.deaths, each.trials, each.execution))
    return order[0].execution if order else None
