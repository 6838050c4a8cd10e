"""Role expressions: the grammar, the conjunctive form, and Accumulo's cases."""

from __future__ import annotations

import json
import time
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from catalog import role_expression
from catalog.errors import InvalidInput, Position
from catalog.role_expression import (
    MAX_CHARACTERS,
    MAX_CLAUSES,
    RoleExpression,
    read_role_expression,
)
from tests.unit.catalog.ebnf import Grammar

GRAMMAR = Grammar(Path(role_expression.__file__).with_suffix(".ebnf").read_text())
# What an expression is made of, and what it must not have.
MARKS = tuple('ab.&|() \t"\\!\n')
ACCUMULO = Path(__file__).parents[4] / "shared/vectors/accumulo-access/testdata.json"
ROLES = ("doctor", "nurse", "icu", "Night Shift", 'odd " \\ name')


def is_read(text: str) -> bool:
    try:
        read_role_expression(text)
    except InvalidInput:
        return False
    return True


@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join))
@example("a&b|a")
@example(' a & ("b|"|a )\t')
@example('"\\""')
@example('"\\a"')
@example('""')
def test_what_the_grammar_allows_is_read_and_nothing_else(text: str) -> None:
    assert is_read(text) == GRAMMAR.allows("expression", text)


@given(st.data())
def test_what_is_made_of_the_grammars_parts_is_read(data: st.DataObject) -> None:
    """Most texts of the test above are wrong. Most of these are right."""
    text, _ = data.draw(trees())
    assert GRAMMAR.allows("expression", text)
    assert is_read(text)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> tuple[str, object]:
    """The text of an expression, and a tree of it that knows no conjunctive form."""
    if depth == 0 or draw(st.booleans()):
        role = draw(st.sampled_from(ROLES))
        quoted = json.dumps(role)
        plain = role.isalnum() and draw(st.booleans())
        return (role if plain else quoted), role
    mark = draw(st.sampled_from("&|"))
    parts = draw(st.lists(trees(depth - 1), min_size=2, max_size=3))
    blank = draw(st.sampled_from(("", " ", "\t ")))
    text = f"{blank}{mark}{blank}".join(f"({part})" for part, _ in parts)
    return text, (mark, [tree for _, tree in parts])


def satisfied(tree: object, roles: frozenset[str]) -> bool:
    if isinstance(tree, str):
        return tree in roles
    assert isinstance(tree, tuple)
    mark, parts = tree
    return (all if mark == "&" else any)(satisfied(part, roles) for part in parts)


def subsets() -> list[frozenset[str]]:
    return [frozenset(some) for n in range(len(ROLES) + 1) for some in combinations(ROLES, n)]


@given(trees())
def test_the_conjunctive_form_means_what_the_text_says(written: tuple[str, object]) -> None:
    text, tree = written
    found = read_role_expression(text)
    for roles in subsets():
        assert found.allows(roles) == satisfied(tree, roles)


@given(trees(), trees())
def test_equal_meaning_is_equal_clauses(one: tuple[str, object], two: tuple[str, object]) -> None:
    first, second = read_role_expression(one[0]), read_role_expression(two[0])
    same = all(satisfied(one[1], roles) == satisfied(two[1], roles) for roles in subsets())
    assert (first == second) == same
    assert (str(first) == str(second)) == same


@given(trees())
def test_the_canonical_text_is_read_as_the_same(written: tuple[str, object]) -> None:
    found = read_role_expression(written[0])
    assert read_role_expression(str(found)) == found


@given(trees(), trees())
def test_both_hold_if_the_union_of_the_clauses_does(
    one: tuple[str, object], two: tuple[str, object]
) -> None:
    first, second = read_role_expression(one[0]), read_role_expression(two[0])
    both = RoleExpression.of(first.clauses | second.clauses)
    assert both == first & second
    for roles in subsets():
        assert both.allows(roles) == (first.allows(roles) and second.allows(roles))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        # Figure 8 of 000: the permissions of joined tuples, reduced by the redundancy law.
        ("R1 & R1", "R1"),
        ("R1 & R2", "R1 & R2"),
        ("R1 & (R1 | R2)", "R1"),
        ("(R1 | R2) & (R2 | R1)", "R1 | R2"),
        ("(R1 | R2) & (R1 | R2 | R3)", "R1 | R2"),
        ("(R1 | R2) & (R1 | R3)", "(R1 | R2) & (R1 | R3)"),
        ("(R1 & R2) | R1", "R1"),
        ("(R1 & R2) | (R1 & R3)", "R1 & (R2 | R3)"),
        ('"Night Shift"|nurse', '"Night Shift" | nurse'),
        ('"nurse"', "nurse"),
    ],
)
def test_canonical_form(text: str, canonical: str) -> None:
    assert str(read_role_expression(text)) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "its end is not expected"),
        ("  ", "its end is not expected"),
        ("doctor nurse", "'n' at character 8 is not expected; join roles by & or |"),
        ("doctor & nurse | icu", "'|' at character 16 is beside the other operator"),
        ("doctor | nurse & icu", "'&' at character 16 is beside the other operator"),
        ("(doctor", "its end is not expected; a parenthesis is not closed"),
        ("doctor)", "')' at character 7 is not expected"),
        ('""', "here a role is named"),
        ('"doctor', "here a role is named"),
        ("é", "here a role is named"),
        ("doctor &", "its end is not expected"),
        ("(" * 40 + "a" + ")" * 40, "more than 32 parentheses deep"),
        ("a" * (MAX_CHARACTERS + 1), "at most 1000 characters, and this one has 1001"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=r".") as refused:
        read_role_expression(text)
    assert words in refused.value.detail


def test_the_place_in_a_larger_text_is_said() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_role_expression("&", Position(3, 7))
    assert refused.value.detail.startswith("line 3, column 7: ")


def test_an_expression_that_grows_is_refused_soon() -> None:
    """A disjunction of n conjunctions has 2^n clauses."""
    began = time.monotonic()
    text = "|".join(f"(a{n}&b{n})" for n in range(100))
    with pytest.raises(InvalidInput, match=f"more than {MAX_CLAUSES} conditions"):
        read_role_expression(text)
    wide = "&".join(f"a{n}" for n in range(MAX_CLAUSES))
    assert len(read_role_expression(wide).clauses) == MAX_CLAUSES
    with pytest.raises(InvalidInput, match="more than"):
        read_role_expression(f"({wide})|({wide.replace('a', 'b')})")
    assert time.monotonic() - began < 10


def accumulo() -> list[tuple[str, list[frozenset[str]], str]]:
    """(expression, roles of each user, wanted result) of all cases."""
    if not ACCUMULO.exists():
        return []
    return [
        (expression, [frozenset(auths) for auths in case["auths"]], test["expectedResult"])
        for case in json.loads(ACCUMULO.read_text())
        for test in case["tests"]
        for expression in test["expressions"]
    ]


@pytest.mark.skipif(not ACCUMULO.exists(), reason="Accumulo's cases are not beside the project")
def test_accumulos_cases() -> None:
    cases = accumulo()
    assert len(cases) > 100
    for text, users, wanted in cases:
        # There the empty expression is public. Here it is an error, as every other unclear one.
        if wanted == "ERROR" or not text:
            with pytest.raises(InvalidInput):
                read_role_expression(text)
            continue
        found = read_role_expression(text)
        # A case with several users means that all of them may see it.
        assert all(found.allows(roles) for roles in users) == (wanted == "ACCESSIBLE"), text
