"""Rules for executions that may have killed their engine: suspicion, trial and parking.

An engine that dies does not say why. So the executions that changed shortly before are suspected,
and run together in an engine of their own for a while. If that engine dies, too, the group is
halved, and each half runs by itself, until a killer is alone. An execution is blamed only if the
engine dies while it runs alone. So a hostile query never gets another query parked.

Time is counted in beats of an engine (`catalog.pulse`), because clocks differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    """How many beats a group must run, if one of it has survived `trials` trials before."""
    return _doubled(PROVEN_BEATS, trials)


def _doubled(beats: int, times: int) -> int:
    return beats << min(times, _DOUBLINGS)


def is_parked(deaths: int) -> bool:
    """Whether an execution is parked whose engine died `deaths` times while it ran alone."""
    return deaths >= DEATHS_TO_PARK


@dataclass(frozen=True, slots=True)
class Suspect:
    """A suspected execution.

    Those of one `group` run together. `deaths` is how often its engine died while it ran alone.
    `trials` is how many trials it has survived.
    """

    execution: int
    group: int
    deaths: int = 0
    trials: int = 0


def next_group(waiting: Iterable[Suspect]) -> frozenset[int]:
    """The executions of the group that runs next. It is empty if none waits.

    The group with the fewest deaths goes first, and of these the largest. So a killer that was
    found lets all others go first, and most queries are back soon.
    """
    groups: defaultdict[int, list[Suspect]] = defaultdict(list)
    for each in waiting:
        groups[each.group].append(each)
    chosen = min(groups.values(), key=_turn, default=())
    return frozenset(each.execution for each in chosen)


def _turn(group: Sequence[Suspect]) -> tuple[int, int, int, int]:
    deaths = max(each.deaths for each in group)
    trials = max(each.trials for each in group)
    return deaths, -len(group), trials, group[0].group


def after_death(tried: Collection[Suspect], newest: int) -> tuple[Suspect, ...]:
    """The suspects as they are after their engine has died while they ran together.

    A lone one has one death more. A larger group becomes two halves, with the next numbers after
    `newest`, which is the highest number of a group. The execution that was added first is in the
    first half, which runs first: what is older is less likely to be the killer.
    """
    if len(tried) == 1:
        return tuple(replace(each, deaths=each.deaths + 1) for each in tried)
    by_age = sorted(tried, key=lambda each: each.execution)
    half = (len(by_age) + 1) // 2
    return tuple(
        replace(each, group=newest + (1 if place < half else 2))
        for place, each in enumerate(by_age)
    )
