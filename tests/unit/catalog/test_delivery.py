"""What a delivery topic takes, and when all of it is covered by somebody's rights."""

from __future__ import annotations

from functools import reduce
from itertools import combinations, pairwise
from operator import or_

from hypothesis import assume, given
from hypothesis import strategies as st

from catalog.clearance import Clearance, covers_weakly
from catalog.delivery import Delivery
from catalog.label import PUBLIC, Label

CATEGORIES = (0, 1, 63, 64, 130)
LABELS = [
    Label.of(*chosen)
    for size in range(len(CATEGORIES) + 1)
    for chosen in combinations(CATEGORIES, size)
]
bits = st.sets(st.sampled_from(CATEGORIES))
clearances = bits.map(lambda found: Clearance.of(*found))
sources = bits.map(lambda found: Label.of(*found))


def taken(delivery: Delivery, sources: Label = PUBLIC) -> set[Label]:
    """All labels whose results go there."""
    return {label for label in LABELS if delivery.takes(label, sources)}


@given(clearances, st.booleans(), sources)
def test_a_whole_class_takes_what_its_clearance_covers(
    held: Clearance, weak: bool, sources: Label
) -> None:
    covered = {
        label
        for label in LABELS
        if (covers_weakly(held, label, sources) if weak else held.covers(label))
    }
    assert taken(Delivery(held, weak), sources) == covered
    # A value: equal ones share a class, which is looked up by it. Strong where nothing is said.
    assert {Delivery(held): True} == {Delivery(held, weak=False, beyond=None): True}


@given(st.lists(bits, min_size=1, max_size=8), st.booleans(), sources)
def test_a_chain_of_differences_takes_each_result_once(
    steps: list[set[int]], weak: bool, sources: Label
) -> None:
    """C, C' without C, C'' without C' and so on: together they are the last, and share nothing."""
    grown = [Clearance.of(*set().union(*steps[: n + 1])) for n in range(len(steps))]
    parts = [
        taken(Delivery(grown[0], weak), sources),
        *(taken(Delivery(more, weak, less), sources) for less, more in pairwise(grown)),
    ]
    assert set().union(*parts) == taken(Delivery(grown[-1], weak), sources)
    assert sum(map(len, parts)) == len(set().union(*parts))


@given(clearances, st.none() | clearances, clearances, st.booleans(), st.booleans(), sources)
def test_what_is_within_rights_takes_nothing_that_they_do_not_cover(
    held: Clearance,
    beyond: Clearance | None,
    rights: Clearance,
    weak: bool,
    weakly: bool,
    sources: Label,
) -> None:
    delivery, covered = Delivery(held, weak, beyond), Delivery(rights, weakly)
    if delivery.within(covered):
        assert taken(delivery, sources) <= taken(covered, sources)


@given(clearances, st.none() | clearances, clearances, st.booleans(), sources)
def test_what_is_not_within_rights_can_take_what_they_do_not_cover(
    held: Clearance, beyond: Clearance | None, rights: Clearance, weak: bool, sources: Label
) -> None:
    """So no topic is cut that could go on."""
    delivery, covered = Delivery(held, weak, beyond), Delivery(rights, weak)
    assume(not weak or beyond is None)
    if taken(delivery, sources) and not delivery.within(covered):
        assert not taken(delivery, sources) <= taken(covered, sources)


def test_weakly_one_of_the_sources_is_enough() -> None:
    strong, weak = Delivery(Clearance.of(0)), Delivery(Clearance.of(0), weak=True)
    assert weak.takes(Label.of(0, 1), Label.of(0, 1))
    assert not strong.takes(Label.of(0, 1), Label.of(0, 1))
    beyond = Delivery(Clearance.of(0, 1), weak=True, beyond=Clearance.of(0))
    assert not beyond.takes(Label.of(0, 1), Label.of(0, 1))
    assert beyond.takes(Label.of(1), Label.of(0, 1))


def test_what_is_delivered_weakly_is_not_within_strong_rights() -> None:
    strong, weak = Delivery(Clearance.of(0)), Delivery(Clearance.of(0), weak=True)
    assert not weak.within(strong)
    assert strong.within(weak) and strong.within(strong) and weak.within(weak)


@given(clearances, st.none() | clearances, st.booleans(), sources)
def test_no_label_goes_nowhere(
    held: Clearance, beyond: Clearance | None, weak: bool, sources: Label
) -> None:
    assert not Delivery(held, weak, beyond).takes(None, sources)


@given(st.lists(clearances, min_size=1, max_size=4), sources)
def test_by_ways_a_result_is_taken_if_one_of_them_alone_covers_it(
    ways: list[Clearance], sources: Label
) -> None:
    """Exact match (000 §5.2.1): the views of the roles, merged once."""
    together = Clearance(reduce(or_, (way.bits for way in ways)))
    exact = Delivery(together, ways=tuple(ways))
    alone = set().union(*(taken(Delivery(way), sources) for way in ways))
    assert taken(exact, sources) == alone
    assert exact.within(Delivery(together))
    assert all(Delivery(way).within(exact) for way in ways)


@given(*[st.lists(clearances, min_size=1, max_size=3)] * 2)
def test_ways_are_within_others_if_they_take_nothing_more(
    ways: list[Clearance], others: list[Clearance]
) -> None:
    one, other = (
        Delivery(Clearance(reduce(or_, (way.bits for way in each))), ways=tuple(each))
        for each in (ways, others)
    )
    assert one.within(other) == (taken(one) <= taken(other))


@given(clearances, clearances, st.lists(clearances, max_size=2), st.none() | clearances)
def test_rights_that_cover_the_same_results_show_as_much(
    held: Clearance, others: Clearance, ways: list[Clearance], beyond: Clearance | None
) -> None:
    """What other topics serve does not count. The ways of an exact match do."""
    one, other = Delivery(held, beyond=beyond), Delivery(others)
    assert one.shows_as_much_as(other) == (taken(Delivery(held)) == taken(other))
    together = Clearance(reduce(or_, (way.bits for way in ways), held.bits))
    exact = Delivery(together, ways=(held, *ways))
    assert exact.shows_as_much_as(Delivery(together, beyond=beyond, ways=(held, *ways)))
    assert not exact.shows_as_much_as(Delivery(together))
