"""Rules for executions that may have killed their engine: suspicion, trial and parking.

An engine that dies does not say why. So the executions that changed shortly before are suspected,
and run alone for a while. An execution is blamed only if the engine dies while it runs alone. So a
hostile query never gets another query parked.

Time is counted in beats of an engine (`catalog.pulse`), because clocks differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# A beat comes every two seconds, so these are two minutes, half a minute and an hour.
HEALTHY_BEATS = 60
PROVEN_BEATS = 15
LONG_LIFE_BEATS = 1_800
DEATHS_TO_PARK = 3
# A time is doubled at most this often. It is days then.
_DOUBLINGS = 12
PARKED = (
    f"its engine ended {DEATHS_TO_PARK} times while it ran alone: it needs too much memory, or "
    "never ends; change it, or start it again"
)


def suspects(changed: Mapping[int, int], beats: int, deaths: int) -> frozenset[int]:
    """The executions that are suspected after their engine has died.

    `changed` has the beat of the engine at which each execution was started or changed. `beats` is
    the engine's last beat. The engine had died `deaths` times since it last lived long. With each
    of these deaths we look back twice as far, so an execution that kills slowly is suspected in the
    end.
    """
    window = _doubled(HEALTHY_BEATS, deaths)
    return frozenset(execution for execution, at in changed.items() if beats - at < window)


def proven_after(trials: int) -> int:
    """How many beats an execution must run alone, after it has survived `trials` trials."""
    return _doubled(PROVEN_BEATS, trials)


def _doubled(beats: int, times: int) -> int:
    return beats << min(times, _DOUBLINGS)


def is_parked(deaths: int) -> bool:
    """Whether an execution is parked whose engine died `deaths` times while it ran alone."""
    return deaths >= DEATHS_TO_PARK


@dataclass(frozen=True, slots=True)
class Waiting:
    """An execution that waits to run alone, with its deaths alone and its survived trials."""

    execution: int
    deaths: int
    trials: int


def next_alone(waiting: Iterable[Waiting]) -> int | None:
    """The execution that runs alone next: the one with the fewest deaths."""
    order = sorted(waiting, key=lambda each: (each.deaths, each.trials, each.execution))
    return order[0].execution if order else None
