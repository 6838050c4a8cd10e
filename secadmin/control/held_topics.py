"""Decides which topics a subscription holds after a change, from its topics and its present rights.

Only these two values decide. It does not matter which call made the change.

A subscription's topics are a *chain*: first a whole class, then difference classes. Each difference
class has the results that its own clearance covers and the clearance before it does not. So each
result goes to at most one topic, and together the topics have what the last clearance covers. If
rights shrink, the chain loses topics at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog.delivery import Delivery

MOST = 8
"""If a chain has so many topics, the next growth replaces it by one whole class."""


@dataclass(frozen=True, slots=True)
class Held:
    """A topic that a subscription holds.

    A closed topic gets nothing more. A leaving topic is held until the topics that replace it are
    fed.
    """

    topic: str
    delivery: Delivery
    closed: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """The change: `cut` these topics now, let these `leave` when the others are fed, `add` a class.

    All other topics stay.
    """

    cut: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()
    add: Delivery | None = None


def next_step(
    held: Sequence[Held], rights: Delivery, grows_by_difference: Callable[[], bool]
) -> Step:
    """The step to the topics that show exactly what `rights`, a whole class, cover.

    A topic is cut if and only if it can hold a result that the rights do not cover. If results are
    missing then, a difference class brings them if that is allowed, and else a whole class.
    """
    kept = [each for each in held if not each.closed and each.delivery.within(rights)]
    cut = frozenset(each.topic for each in held if each not in kept)
    chain, add = _completed(kept, rights, grows_by_difference)
    leave = frozenset(each.topic for each in kept if each not in chain)
    return Step(cut, leave, add)


def _completed(
    kept: Sequence[Held], rights: Delivery, grows_by_difference: Callable[[], bool]
) -> tuple[Sequence[Held], Delivery | None]:
    """The chain that stays, and the class that is added to it."""
    staying = _chain([each for each in kept if not each.leaving], rights)
    # A leaving topic is kept if it is useful: it is fed, and its reader is there.
    for chain in (staying, _chain(kept, rights)):
        if chain and chain[-1].delivery.shows_as_much_as(rights):
            return chain, None
    chain = staying or _chain(kept, rights)
    if chain and len(chain) < MOST and not rights.weak and grows_by_difference():
        return chain, Delivery(rights.clearance, beyond=chain[-1].delivery.clearance)
    return (), rights


def _chain(held: Sequence[Held], rights: Delivery) -> Sequence[Held]:
    """The chain in these topics with the semantics of the rights. If there are several, the one
    whose first topic shows more.
    """
    left = [each for each in held if each.delivery.weak == rights.weak]
    chain: list[Held] = []
    while True:
        end = chain[-1].delivery.clearance if chain else None
        links = [each for each in left if each.delivery.beyond == end]
        if not links:
            return chain
        link = max(links, key=lambda each: each.delivery.clearance.bits.bit_count())
        chain.append(link)
        left.remove(link)
