"""The three stages of paper 000, with sets of roles (§4 and §5).

Nothing here knows of categories. A tuple has a role expression as a set of alternatives: whoever
has all roles of one alternative satisfies it. A user is the set of its active roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import TypeVar

Roles = frozenset[str]
Allowed = frozenset[Roles]
Element = TypeVar("Element", bound=Hashable)
# Runs a plan over some elements. Each result comes with the places of the elements that it is from.
Run = Callable[[Sequence[tuple[int, Element]]], Sequence[tuple[Element, Set[int]]]]


def satisfies(active: Set[str], allowed: Allowed) -> bool:
    """Whether a user with these roles satisfies an expression."""
    return any(alternative <= active for alternative in allowed)


def cumulative(several: Iterable[Allowed]) -> Allowed:
    """§5.2.1: the permissions of a combined tuple, which all its parts demand, by the Redundancy
    Law without what another alternative makes superfluous.
    """
    found: Allowed = frozenset({frozenset()})
    for allowed in several:
        found = frozenset(one | two for one in found for two in allowed)
    return frozenset(each for each in found if not any(other < each for other in found))


def routed(
    elements: Iterable[tuple[Element, Allowed]], active: Set[str]
) -> Sequence[tuple[int, Element]]:
    """Stage I: the elements that a query of these roles may process, each once, in their order."""
    return [
        (number, element)
        for number, (element, allowed) in enumerate(elements)
        if satisfies(active, allowed)
    ]


def cumulative_approach(
    elements: Sequence[tuple[Element, Allowed]], run: Run[Element], active: Set[str]
) -> Sequence[Element]:
    """One query for all roles. Stage III gives a user what its roles satisfy (role-level sharing).

    Stage I lets in what any user may process, so all of it.
    """
    results = run([(number, element) for number, (element, _) in enumerate(elements)])
    return [
        result
        for result, used in results
        if satisfies(active, cumulative(elements[number][1] for number in used))
    ]


def partitioned(
    elements: Sequence[tuple[Element, Allowed]], run: Run[Element], active: Set[str]
) -> Sequence[Element]:
    """Windows that are partitioned by users' roles: each user has the partition of its roles."""
    return [result for result, _ in run(routed(elements, active))]


def of_one_size(
    elements: Sequence[tuple[Element, Allowed]], size: int, active: Set[str]
) -> Sequence[Sequence[Element]]:
    """§5.2.1: the size of the window is maintained for the entire set of tuples.

    For each element that arrives, what the partition of these roles holds then, of the newest
    `size` elements of everybody.
    """
    windows = [elements[max(0, end - size) : end] for end in range(1, len(elements) + 1)]
    return [[each for each, allowed in held if satisfies(active, allowed)] for held in windows]


def exact_match(
    elements: Sequence[tuple[Element, Allowed]], run: Run[Element], active: Set[str]
) -> Sequence[Element]:
    """§5.2.1: a partition for each role. A user gets what its roles' partitions give.

    A tuple with several roles is in several partitions. What they give of the same tuples comes
    once: as often as in the partition that has it most often.
    """
    found: Counter[tuple[Element, frozenset[int]]] = Counter()
    for role in sorted(active):
        results = run(routed(elements, {role}))
        found |= Counter((result, frozenset(used)) for result, used in results)
    return [result for result, _ in found.elements()]
