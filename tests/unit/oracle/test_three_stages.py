"""The three stages of paper 000 with sets of roles, against the platform's categories (§4, §5).

On the one side, `tests.oracle.role_sets`, which knows of no category. On the other side, what is
pure of the platform: its role expressions and clauses, and its decisions (`catalog.delivery`), with
the results that the oracle of plans gives. `tests/differential/test_role_sets.py` has Spark.
THREE_STAGES_CASES sets how many random queries there are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

import pytest

from catalog.delivery import Delivery
from catalog.label import Label
from catalog.relation import Relation
from tests.differential.expected import expected
from tests.differential.ward import (
    OF_CLAUSE,
    POLICIES,
    SOURCE,
    STAGES,
    STREAMS,
    USERS,
    Found,
    Told,
    by_the_paper,
    case_of,
    class_of,
    cleared,
    label_of,
    of_one_size,
    query,
    records,
)
from tests.lanes import number_of
from tests.oracle import role_sets
from tests.oracle.plans import run
from tests.oracle.values import Tuple

NUMBER = number_of("THREE_STAGES_CASES", sample=500, long=2_000)
TOGETHER = 100
_SOURCES = Label.of(*SOURCE.values())


def _reach(relation: Relation) -> Label:
    return Label.of(SOURCE[relation.object_id], *OF_CLAUSE.values())


def _tables(told: Told) -> dict[str, list[Tuple]]:
    return {
        of: [Tuple(values, label_of(STREAMS[of], policy)) for values, policy in several]
        for of, several in told.given.items()
    }


def _strong(told: Told, own: Delivery) -> list[Tuple]:
    results = run(told.plan.root, _tables(told), _reach)
    return [each for each in results if own.takes(each.label, _SOURCES)]


def _view(told: Told, own: Delivery) -> list[Tuple]:
    tables = {
        of: [each for each in several if own.takes(each.label, _SOURCES)]
        for of, several in _tables(told).items()
    }
    return run(told.plan.root, tables, _reach, alone=True)


def _decided(told: Told, active: Set[str], semantics: str) -> Found:
    """What a user with these roles gets on the platform."""
    own = class_of(active, semantics)
    if semantics == "exact":
        outcome = expected(replace(case_of("exact", told, semantics), classes=(own,)))
        return _counted(outcome.delivered[0])
    give = {"strong": _strong, "view": _view}[semantics]
    return _counted(give(told, Delivery(own.clearance)))


def _counted(results: Sequence[Tuple]) -> Found:
    return Counter(each.values for each in results)


@pytest.mark.parametrize("start", range(0, NUMBER, TOGETHER))
def test_each_user_gets_what_the_paper_says(start: int) -> None:
    """Each case has one semantics, and the user has one set of active roles of eight."""
    told_apart = 0
    for seed in range(start, min(start + TOGETHER, NUMBER)):
        chance = random.Random(seed)
        told = Told(query(chance), records(chance, chance.randint(2, 6)))
        active, semantics = chance.choice(USERS[1:]), chance.choice([*STAGES])
        wanted = by_the_paper(told, active, semantics)
        assert _decided(told, active, semantics) == wanted, (seed, semantics, active, told)
        told_apart += bool(wanted)
    assert told_apart > min(TOGETHER, NUMBER) // 4, "without results nothing is compared"


def test_windows_with_one_size_for_the_entire_set_of_tuples() -> None:
    """§5.2.1: the size of the window is maintained for each partition, or for all tuples."""
    chance = random.Random(3)
    differing = 0
    for seed in range(200):
        size, active = chance.randint(1, 4), chance.choice(USERS[1:])
        text = f"SELECT RSTREAM patID, pulseRate FROM HRStr [ROWS {size} OF ALL]"
        told = Told(text, records(chance, chance.randint(2, 9)))
        wanted = of_one_size(told, size, active)
        outcome = expected(
            replace(case_of("all", told, "view"), classes=(class_of(active, "view"),))
        )
        assert _counted(outcome.delivered[0]) == wanted, (seed, active, told)
        own = Told(text.replace(" OF ALL", ""), told.given)
        differing += by_the_paper(own, active, "view") != wanted
    assert differing > 50, "otherwise one size for all tuples would be that of a partition"


@pytest.mark.parametrize("text", POLICIES)
def test_decisions_on_single_tuples_are_equal(text: str) -> None:
    """Stage I and stage III ask the same question, and both sides answer it in the same way."""
    for relation in STREAMS.values():
        label = label_of(relation, text)
        for active in USERS:
            taken = Delivery(cleared(*active)).takes(label, _SOURCES)
            assert taken == role_sets.satisfies(active, POLICIES[text])


def test_decisions_on_combined_tuples_are_equal() -> None:
    """A result demands what all its parts demand, under the Redundancy Law (§5.2.1, figure 8)."""
    chance = random.Random(1)
    for _ in range(300):
        texts = [chance.choice([*POLICIES]) for _ in range(chance.randint(1, 4))]
        label = Label()
        for text in texts:
            label |= label_of(chance.choice([*STREAMS.values()]), text)
        allowed = role_sets.cumulative(POLICIES[text] for text in texts)
        for active in USERS:
            taken = Delivery(cleared(*active)).takes(label, _SOURCES)
            assert taken == role_sets.satisfies(active, allowed)


def test_cumulative_subsumes_exact_match_where_windows_are_endless() -> None:
    """§5.2.1 says so of windows of infinite size: joins, and what only selects."""
    chance = random.Random(2)
    text = (
        "SELECT ISTREAM h.pulseRate, b.systolic FROM HRStr [UNBOUNDED] AS h, "
        "BPStr [UNBOUNDED] AS b WHERE h.patID = b.patID"
    )
    more = 0
    for _ in range(6):
        told = Told(text, records(chance, 5))
        for active in USERS[1:]:
            exact, strong = (by_the_paper(told, active, each) for each in ("exact", "strong"))
            assert exact <= strong
            more += exact < strong
    assert more > 6
