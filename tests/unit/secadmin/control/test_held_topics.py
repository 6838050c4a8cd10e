"""However rights change: what a subscription's topics hold together is what its rights show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.label import Label
from secadmin.control.held_topics import MOST, Held, Step, next_step

CATEGORIES = (0, 1, 2, 64)
SOURCES = Label.of(0, 1, 64)
LABELS = [
    Label.of(*chosen)
    for size in range(len(CATEGORIES) + 1)
    for chosen in combinations(CATEGORIES, size)
]
clearances = st.sets(st.sampled_from(CATEGORIES)).map(lambda found: Clearance.of(*found))
# What comes next: the rights of then, and whether what was added is fed before.
histories = st.lists(st.tuples(clearances, st.booleans()), min_size=1, max_size=14)


@dataclass
class Subscription:
    """What a subscription holds, and what has become of its topics."""

    weak: bool
    by_difference: bool
    held: list[Held] = field(default_factory=list)
    unfed: set[str] = field(default_factory=set)
    made: int = 0

    def step(self, clearance: Clearance) -> Step:
        """Its rights are these now."""
        rights = Delivery(clearance, self.weak)
        step = next_step(self.held, rights, lambda: self.by_difference)
        self.held = [
            replace(each, leaving=each.topic in step.leave)
            for each in self.held
            if each.topic not in step.cut
        ]
        if step.add is not None:
            self.made += 1
            self.held.append(Held(f"t{self.made}", step.add))
            self.unfed.add(f"t{self.made}")
        return step

    def is_fed(self) -> None:
        """All that it holds is fed now, and what leaves is cut, as the upkeep does it."""
        self.unfed.clear()
        self.held = self.staying()

    def staying(self) -> list[Held]:
        """All but what leaves."""
        return [each for each in self.held if not each.leaving]


def taken(held: Sequence[Held]) -> Counter[Label]:
    """How many of the topics take each label."""
    return Counter(
        label for label in LABELS for each in held if each.delivery.takes(label, SOURCES)
    )


def covered(clearance: Clearance, weak: bool) -> set[Label]:
    """What the rights show."""
    return {label for label in LABELS if Delivery(clearance, weak).takes(label, SOURCES)}


@given(histories, st.booleans(), st.booleans())
def test_after_each_change_the_topics_hold_what_the_rights_show(
    history: list[tuple[Clearance, bool]], weak: bool, by_difference: bool
) -> None:
    subscription = Subscription(weak, by_difference)
    for clearance, feed in history:
        subscription.step(clearance)
        shown = covered(clearance, weak)
        assert taken(subscription.held).keys() <= shown, "no topic holds more than the rights show"
        assert taken(subscription.staying()) == dict.fromkeys(shown, 1), "each result once"
        assert len(subscription.staying()) <= MOST
        if feed:
            subscription.is_fed()


@given(histories, st.booleans(), st.booleans())
def test_what_was_shown_and_is_shown_is_read_without_a_pause_while_rights_grow(
    history: list[tuple[Clearance, bool]], weak: bool, by_difference: bool
) -> None:
    subscription, grown = Subscription(weak, by_difference), Clearance()
    for more, feed in history:
        fed_before = taken([h for h in subscription.held if h.topic not in subscription.unfed])
        grown = Clearance(grown.bits | more.bits)
        assert not subscription.step(grown).cut
        fed = taken([h for h in subscription.held if h.topic not in subscription.unfed])
        assert fed == fed_before
        if feed:
            subscription.is_fed()


@given(histories, clearances)
def test_no_topic_is_cut_that_holds_nothing_of_what_was_taken(
    history: list[tuple[Clearance, bool]], left: Clearance
) -> None:
    subscription = Subscription(weak=False, by_difference=True)
    for clearance, feed in history:
        subscription.step(clearance)
        if feed:
            subscription.is_fed()
    before = subscription.held
    cut = subscription.step(left).cut
    for each in before:
        lost = taken([each]).keys() - covered(left, weak=False)
        assert (each.topic in cut) == bool(lost)


@given(histories, st.booleans(), st.booleans())
def test_what_a_new_class_takes_and_was_shown_is_in_what_is_cut_for_it_or_leaves(
    history: list[tuple[Clearance, bool]], weak: bool, by_difference: bool
) -> None:
    """So a refill from what was cut has all that the subscriber would miss."""
    subscription = Subscription(weak, by_difference)
    for clearance, feed in history:
        before = list(subscription.held)
        step = subscription.step(clearance)
        if step.add is not None:
            read = [each for each in before if each.topic in step.cut | step.leave]
            shown = taken(before).keys() & taken([Held("new", step.add)]).keys()
            assert shown <= taken(read).keys()
        if feed:
            subscription.is_fed()


def test_a_growth_adds_a_topic_and_its_loss_takes_just_that_one() -> None:
    subscription = Subscription(weak=False, by_difference=True)
    subscription.step(Clearance.of(0))
    grown = subscription.step(Clearance.of(0, 1))
    assert grown == Step(add=Delivery(Clearance.of(0, 1), beyond=Clearance.of(0)))
    assert subscription.step(Clearance.of(0)) == Step(cut=frozenset({"t2"}))


def test_beyond_eight_topics_a_subscription_is_folded_into_one() -> None:
    subscription = Subscription(weak=False, by_difference=True)
    for count in range(1, MOST + 1):
        subscription.step(Clearance.of(*range(count)))
    assert len(subscription.held) == MOST
    whole = Delivery(Clearance.of(*range(MOST + 1)))
    step = subscription.step(whole.clearance)
    assert step == Step(leave=frozenset(f"t{n}" for n in range(1, MOST + 1)), add=whole)
    # It grows beyond the one, also while that is not fed yet.
    subscription.step(Clearance.of(*range(MOST + 2)))
    assert [each.topic for each in subscription.staying()] == ["t9", "t10"]
    subscription.is_fed()
    assert [each.topic for each in subscription.held] == ["t9", "t10"]


def test_a_chain_that_is_longer_is_folded_as_well() -> None:
    links = [Clearance.of(*range(count)) for count in range(1, MOST + 2)]
    held = [Held("t0", Delivery(links[0]))]
    for less, more in pairwise(links):
        # As they are read from the catalog: equal, and not the same.
        held.append(Held(f"t{len(held)}", Delivery(more, beyond=Clearance(less.bits))))
    assert next_step(held, Delivery(links[-1]), lambda: True) == Step()
    whole = Delivery(Clearance.of(*range(MOST + 2)))
    leave = frozenset(each.topic for each in held)
    assert next_step(held, whole, lambda: True) == Step(leave=leave, add=whole)


def test_what_was_leaving_is_taken_back_when_its_successor_is_cut() -> None:
    held = [
        Held("old", Delivery(Clearance.of(0)), leaving=True),
        Held("new", Delivery(Clearance.of(0, 1, 2))),
    ]
    step = next_step(held, Delivery(Clearance.of(0, 1)), lambda: True)
    added = Delivery(Clearance.of(0, 1), beyond=Clearance.of(0))
    assert step == Step(cut=frozenset({"new"}), add=added)


def test_a_topic_of_the_other_semantics_is_no_part_of_the_chain() -> None:
    rights = Delivery(Clearance.of(0), weak=True)
    strong = [Held("strong", Delivery(Clearance.of(0)))]
    assert next_step(strong, rights, lambda: True) == Step(leave=frozenset({"strong"}), add=rights)
    weak = [Held("weak", rights)]
    whole = Delivery(Clearance.of(0))
    assert next_step(weak, whole, lambda: True) == Step(cut=frozenset({"weak"}), add=whole)


def test_a_closed_topic_is_cut_whatever_it_holds() -> None:
    held = [Held("old", Delivery(Clearance.of(0)), closed=True)]
    rights = Delivery(Clearance.of(0))
    assert next_step(held, rights, lambda: True) == Step(cut=frozenset({"old"}), add=rights)


def test_weak_delivery_grows_by_a_whole_class() -> None:
    subscription = Subscription(weak=True, by_difference=True)
    subscription.step(Clearance.of(0))
    step = subscription.step(Clearance.of(0, 1))
    assert step == Step(leave=frozenset({"t1"}), add=Delivery(Clearance.of(0, 1), weak=True))
