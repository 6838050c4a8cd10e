"""Role clauses against sets: every set of rights and every reach of a small world."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

import pytest

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.role_clauses import NO_CLAUSES, RoleClauses

# Categories of each kind are below and above those of the others.
OWN, DOCTOR, NURSE, SURGEON = (0, 5, 8), 1, 4, 7
EITHER, NURSES = 2, 6
CLAUSES: Mapping[int, Collection[int]] = {EITHER: (DOCTOR, NURSE, SURGEON), NURSES: (NURSE,)}


def clauses() -> RoleClauses:
    return RoleClauses({at: Label.of(*roles) for at, roles in CLAUSES.items()})


def subsets(*categories: int) -> Iterator[set[int]]:
    for count in range(len(categories) + 1):
        yield from map(set, combinations(categories, count))


@pytest.mark.parametrize("rights", subsets(*OWN, DOCTOR, NURSE, SURGEON))
def test_who_has_one_role_of_a_clause_holds_it_and_nobody_holds_a_role(rights: set[int]) -> None:
    held = {at for at, roles in CLAUSES.items() if rights.intersection(roles)}
    wanted = rights.intersection(OWN) | held
    assert clauses().cleared(Clearance.of(*rights)) == Clearance.of(*wanted)


@pytest.mark.parametrize("reach", subsets(*OWN, *CLAUSES))
def test_the_roles_of_its_clauses_decide_what_is_visible_of_a_reach(reach: set[int]) -> None:
    roles = {role for at in reach.intersection(CLAUSES) for role in CLAUSES[at]}
    wanted = reach.intersection(OWN) | roles
    assert clauses().deciding(Label.of(*reach)) == Label.of(*wanted)


def test_without_clauses_all_stays_as_it_is() -> None:
    assert NO_CLAUSES.cleared(Clearance.of(3, 70)) == Clearance.of(3, 70)
    assert NO_CLAUSES.deciding(Label.of(3, 70)) == Label.of(3, 70)
