"""Which topics a subscription holds after a change, given those that it holds and its rights now.

What is pure here decides alone: no call is taken for a growth or a loss by its name.

A subscription's topics are a *chain*: first a whole class, then differences, each beyond the
clearance before it. So each result goes to one of them at most, and together they take what the
last one's clearance covers. When rights shrink, a chain loses its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog.delivery import Delivery

MOST = 8
"""A chain of so many topics is folded into one class by the next growth."""


@dataclass(frozen=True, slots=True)
class Held:
    """A topic that a subscription holds.

    A closed one gets nothing more. A leaving one is held until those in its place are fed.
    """

    topic: str
    delivery: Delivery
    closed: bool = False
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of them: `cut` now, `leave` when the others are fed; `add` is a class to add.

    All other topics stay.
    """

    cut: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()
    add: Delivery | None = None


def next_step(
    held: Sequence[Held], rights: Delivery, grows_by_difference: Callable[[], bool]
) -> Step:
    """The step to the topics that show exactly what `rights`, a whole class, cover.

    A topic is cut iff it can hold a result that the rights do not cover. What is missing then comes
    by a difference class where that may be (asked only if it matters), else by a whole class.
    """
    kept = [each for each in held if not each.closed and each.delivery.within(rights)]
    cut = frozenset(each.topic for each in held if each not in kept)
    chain, add = _completed(kept, rights, grows_by_difference)
    leave = frozenset(each.topic for each in kept if each not in chain)
    return Step(cut, leave, add)


def _completed(
    kept: Sequence[Held], rights: Delivery, grows_by_difference: Callable[[], bool]
) -> tuple[Sequence[Held], Delivery | None]:
    """The chain that stays, and what is added to it."""
    staying = _chain([each for each in kept if not each.leaving], rights)
    # What was about to leave is taken back where it serves: it is fed, and its reader is there.
    for chain in (staying, _chain(kept, rights)):
        if chain and chain[-1].delivery.clearance == rights.clearance:
            return chain, None
    chain = staying or _chain(kept, rights)
    if chain and len(chain) < MOST and not rights.weak and grows_by_difference():
        return chain, Delivery(rights.clearance, beyond=chain[-1].delivery.clearance)
    return (), rights


def _chain(held: Sequence[Held], rights: Delivery) -> Sequence[Held]:
    """The chain among them, of the rights' semantics; of several, what shows more at its start."""
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
