"""Which executions run together: the rules, without Spark.

A query without state that has not changed for a while (it is *steady*) runs together with the
others that read the same relation at the same level. What changes leaves its group. So a group
starts again only when a member leaves, or when enough others have come.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.placement import Placement
from catalog.plan_json import encode
from catalog.runs import QueryRun, common_parts
from secfilter.fused_plan import fused_plan

MOST_MEMBERS = 128
"""How many executions run together at most."""
MOST_GROUP_PARTS = 4_000
"""How large their plans are at most, all together (`FusedPlan.parts`)."""
LONGEST_WAIT_S = 600.0
"""A group starts again for newcomers so often, if they are less than a quarter of it."""
_QUARTER = 4
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Able:
    """An execution that could run with others: those with the same `key`.

    `parts` is the size of its plan. One that is `steady` stays in its group. One that is `ready`
    also runs by itself, and may join a group. For one that is ready `soon` the others wait, so that
    one start takes all of them. One that has `waited` for others waits no longer.
    """

    key: str
    parts: int
    steady: bool = True
    ready: bool = False
    soon: bool = False
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Executions that run together, by the names of their runs. It is so since that time (s)."""

    key: str
    members: tuple[str, ...]
    since: float


Groups = Mapping[str, Group]


def able(run: QueryRun) -> Able | None:
    """The execution, as far as its plan decides; None if it always runs alone.

    What is isolated reads nothing but what its class may see. So it shares no scan with others. A
    backfill begins in the past, and ends.
    """
    if run.placement is Placement.APART or run.viewers is not None or run.independent:
        return None
    plan = None if run.backfill else fused_plan(run.plan)
    if plan is None or plan.parts > MOST_GROUP_PARTS:
        return None
    text = json.dumps([encode(plan.source), encode(run.floor)], sort_keys=True)
    return Able(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], plan.parts)


def ranked(runs: Mapping[str, QueryRun], known: Mapping[str, Able]) -> dict[str, Able]:
    """The same with keys that tell runs apart that differ in what they read (`common_parts`).

    One level may see less of a relation than another one, with the same floor. The runs that can
    meet most categories keep their key. So nothing changes for them when others come.
    """
    parts: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
    numbers: dict[str, int] = {}
    for name in sorted(known, key=lambda each: (-_categories(runs[each]), each)):
        own, others = common_parts(runs[name]), parts[known[name].key]
        if own not in others:
            others.append(own)
        numbers[name] = others.index(own)
    return {
        name: replace(each, key=f"{each.key}-{numbers[name]}") if numbers[name] else each
        for name, each in known.items()
    }


def _categories(run: QueryRun) -> int:
    return sum(label.bits.bit_count() for label in run.reaches.values())


def regrouped(groups: Groups, known: Mapping[str, Able], prefix: str, now: float) -> Groups:
    """The groups as they should be now. `known` has all that could run with others.

    A group without a change is the same value as before. Names of new groups begin with `prefix`.
    From two executions on a group is cheaper than each alone; a group of one is none.
    """
    joining, gathering = _joining(groups, known), _gathering(groups, known)
    found: dict[str, Group] = {}
    for name, group in groups.items():
        staying = _staying(group, known)
        fitting = _fitting(staying, joining[group.key], known)
        left = len(staying) < len(group.members)
        enough = _are_enough(fitting, staying, now - group.since)
        changes = left or (enough and group.key not in gathering)
        members = (*staying, *fitting) if changes else group.members
        if len(members) > 1:
            found[name] = replace(group, members=members, since=now) if changes else group
        # Those that fit wait for this group, also if it does not take them yet.
        joining[group.key] = [each for each in joining[group.key] if each not in fitting]
    for key, waiting in joining.items():
        if key in gathering:
            continue
        found |= _begun(key, waiting, known, prefix, {*groups, *found}, now)
    return found


def _joining(groups: Groups, known: Mapping[str, Able]) -> defaultdict[str, list[str]]:
    """key -> what is ready and in no group."""
    grouped = {member for group in groups.values() for member in group.members}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, each in known.items():
        if each.ready and name not in grouped:
            found[each.key].append(name)
    return found


def _gathering(groups: Groups, known: Mapping[str, Able]) -> set[str]:
    """The keys of which another execution is ready soon, and none has waited for long."""
    grouped = {member for group in groups.values() for member in group.members}
    free = [each for name, each in known.items() if name not in grouped]
    waited = {each.key for each in free if each.ready and each.waited}
    return {each.key for each in free if each.soon} - waited


def _staying(group: Group, known: Mapping[str, Able]) -> tuple[str, ...]:
    return tuple(
        member
        for member in group.members
        if member in known and known[member].key == group.key and known[member].steady
    )


def _fitting(
    staying: Sequence[str], joining: Iterable[str], known: Mapping[str, Able]
) -> tuple[str, ...]:
    """Those for which there is room in the group."""
    count, parts = len(staying), sum(known[each].parts for each in staying)
    found = []
    for each in joining:
        if count < MOST_MEMBERS and parts + known[each].parts <= MOST_GROUP_PARTS:
            found.append(each)
            count, parts = count + 1, parts + known[each].parts
    return tuple(found)


def _are_enough(fitting: Sequence[str], staying: Sequence[str], unchanged_s: float) -> bool:
    """Whether the group starts again for them."""
    if not fitting:
        return False
    return len(fitting) * _QUARTER >= len(staying) or unchanged_s >= LONGEST_WAIT_S


def _begun(
    key: str,
    waiting: Sequence[str],
    known: Mapping[str, Able],
    prefix: str,
    taken: set[str],
    now: float,
) -> dict[str, Group]:
    """New groups of those that fit into none."""
    found: dict[str, Group] = {}
    while len(members := _fitting((), waiting, known)) > 1:
        names = (f"{prefix}-{key}-{number}" for number in range(1, len(taken) + 2))
        name = next(each for each in names if each not in taken)
        found[name] = Group(key, members, now)
        taken.add(name)
        waiting = [each for each in waiting if each not in members]
    return found
