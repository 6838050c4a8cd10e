"""Levels: labels of companies say what the paper's vectors say (001 §3, figure 2)."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.clearance import Clearance
from catalog.conflict_class import (
    ConflictClass,
    canonical_level,
    check_company_name,
    level_of,
    narrowed,
    read_level,
)
from catalog.errors import InvalidInput
from catalog.label import Label, combine
from catalog.role_clauses import RoleClauses
from tests.oracle import levels as vectors

# Figure 2, with a third company and bits that are in two words.
COI1 = ConflictClass(1, "COI1", 3, {"1": 4, "2": 70})
COI2 = ConflictClass(2, "COI2", 5, {"A": 6, "B": 64, "C": 9})
CLASSES = (COI1, COI2)
ALL = [
    tuple(parts)
    for parts in product(*([*each.companies, vectors.T, vectors.BOTTOM] for each in CLASSES))
]
CLAUSES = RoleClauses(
    {
        each.trusted if at is None else at: Label.of(each.trusted, *([] if at is None else [at]))
        for each in CLASSES
        for at in (None, *each.companies.values())
    }
)
ANY = st.sampled_from(ALL)


def label(level: vectors.Level) -> Label:
    return read_level(vectors.printed(level), CLASSES)


def test_figure_2_has_twenty_levels_and_each_reads_as_it_prints() -> None:
    assert len(ALL) == 20
    assert [level_of(label(level), CLASSES) for level in ALL] == [*map(vectors.printed, ALL)]


@pytest.mark.parametrize("low", ALL)
def test_a_level_clears_exactly_what_it_dominates(low: vectors.Level) -> None:
    """Definition 4, for all pairs of figure 2."""
    for high in ALL:
        cleared = CLAUSES.cleared(Clearance(label(high).bits))
        assert cleared.covers(label(low)) == vectors.dominated(low, high), (low, high)


@given(st.lists(ANY, max_size=4))
def test_the_union_of_labels_is_the_least_upper_bound(several: list[vectors.Level]) -> None:
    expected = vectors.lub(several, len(CLASSES))
    assert level_of(combine(map(label, several)), CLASSES) == vectors.printed(expected)
    for high in ALL:
        cleared = CLAUSES.cleared(Clearance(label(high).bits))
        above = all(vectors.dominated(each, high) for each in several)
        assert cleared.covers(combine(map(label, several))) == above


@pytest.mark.parametrize("own", ALL)
def test_a_session_has_the_greatest_level_below_that_of_its_user_and_its_own(
    own: vectors.Level,
) -> None:
    """The greatest lower bound, by the paper's dominance alone. Some sessions name one class."""
    classes = {each.id: each for each in CLASSES}
    for wanted in ALL:
        for named in ((1, 2), (1,), (2,), ()):
            asked = {each: wanted[each - 1] for each in named}
            bounds = [own, tuple(asked.get(each, vectors.T) for each in (1, 2))]
            below = [
                each for each in ALL if all(vectors.dominated(each, bound) for bound in bounds)
            ]
            (greatest,) = (
                each for each in below if all(vectors.dominated(other, each) for other in below)
            )
            found = narrowed(label(own), asked, classes)
            assert level_of(found, CLASSES) == vectors.printed(greatest)


def test_a_company_that_comes_later_is_within_t_and_in_no_other_company() -> None:
    later = Label.of(200)
    clauses = RoleClauses({**CLAUSES.roles, 200: Label.of(COI1.trusted, 200)})
    held = {level: clauses.cleared(Clearance(label(level).bits)) for level in ALL}
    assert {level[0] for level, own in held.items() if own.covers(later)} == {vectors.T}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("[1,_]", "[1, ⊥]"),
        (" [ 1 , ⟂ ] ", "[1, ⊥]"),
        ("['Company 1', T]", "[Company 1, T]"),
        ("[T]", "[T]"),
        ("1, T", None),
        ("", None),
        ("[", None),
    ],
)
def test_levels_are_read_as_people_write_them(text: str, canonical: str | None) -> None:
    assert canonical_level(text) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1, _", r"a level is written as \[Company1, _, T\]"),
        ("[1]", "1 parts, and there are 2 conflict classes here, in this order: COI1, COI2"),
        ("[1, X]", "COI2 has no company 'X'"),
        ("[A, 1]", "COI1 has no company 'A'"),
    ],
)
def test_a_level_that_is_none_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_level(text, CLASSES)


def test_where_there_is_no_conflict_class_there_is_no_level() -> None:
    with pytest.raises(InvalidInput, match="nothing that is read here has a conflict class"):
        read_level("[T]", ())


@pytest.mark.parametrize("name", ["", "T", "_", "⊥", " a", "a ", "a,b", "[a]", "a" * 64, "é"])
def test_a_name_that_could_be_read_as_something_else_is_no_company(name: str) -> None:
    with pytest.raises(InvalidInput, match="not a usable company name"):
        check_company_name(name)


@pytest.mark.parametrize("name", ["1", "A", "Company 1", "ACME-2.x_y", "a" * 63])
def test_names_of_companies(name: str) -> None:
    assert check_company_name(name) == name
