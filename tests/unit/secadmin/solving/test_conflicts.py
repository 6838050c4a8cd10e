"""NR and PR against tuples that are tried one by one, and the cases of paper 002."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.schema import Attribute, Schema, Type
from secadmin.languages import expression_text, parse_condition
from secadmin.solving.conflicts import Conflict, Loss, conflict

SCHEMA = Schema(
    (
        Attribute("a", Type.BIGINT),
        Attribute("b", Type.BIGINT, required=True),
        Attribute("x", Type.DOUBLE),
        Attribute("s", Type.STRING),
        Attribute("t", Type.BOOLEAN),
        Attribute("at", Type.TIMESTAMP, required=True),
    )
)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
Tuple = Mapping[str, int | None]


def found(asked: str | None, allowed: str | None) -> Conflict:
    return conflict(
        None if asked is None else parse_condition(asked, SCHEMA),
        None if allowed is None else parse_condition(allowed, SCHEMA),
        SCHEMA,
    )


def loss(asked: str | None, allowed: str | None) -> Loss:
    return found(asked, allowed).loss


def holds(condition: Expression, values: Tuple) -> bool | None:
    """SQL's answer for one tuple: None is unknown."""
    match condition:
        case Call("and", parts):
            answers = [holds(part, values) for part in parts]
            return False if False in answers else None if None in answers else True
        case Call("or", parts):
            answers = [holds(part, values) for part in parts]
            return True if True in answers else None if None in answers else False
        case Call("not", (part,)):
            inner = holds(part, values)
            return None if inner is None else not inner
        case Call("is_null", (AttributeRef(name),)):
            return values[name] is None
        case Call(name, (AttributeRef(attribute), Literal(int() as number))):
            value = values[attribute]
            if value is None:
                return None
            return {
                "=": value == number,
                "<>": value != number,
                "<": value < number,
                "<=": value <= number,
                ">": value > number,
                ">=": value >= number,
            }[name]
    raise AssertionError(condition)


def tuples() -> Iterator[Tuple]:
    # Constants are from 0 to 3, so no other number behaves differently.
    for a, b in product((None, *range(-1, 5)), range(-1, 5)):
        yield {"a": a, "b": b}


def by_trying(asked: Expression, allowed: Expression) -> Loss:
    wanted = [each for each in tuples() if holds(asked, each)]
    left = [each for each in wanted if holds(allowed, each)]
    if not wanted:
        return Loss.OWN
    if not left:
        return Loss.ALL
    return Loss.NOTHING if len(left) == len(wanted) else Loss.PART


def compare(name: str, operator: str, number: int) -> Expression:
    return Call(operator, (AttributeRef(name), Literal(number, Type.BIGINT)))


COMPARISONS = st.one_of(
    st.builds(compare, st.sampled_from("ab"), st.sampled_from(OPERATORS), st.integers(0, 3)),
    st.sampled_from("ab").map(lambda name: Call("is_null", (AttributeRef(name),))),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3)).map(
            lambda drawn: Call(drawn[0], tuple(drawn[1]))
        ),
        inner.map(lambda part: Call("not", (part,))),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(CONDITIONS, CONDITIONS)
def test_what_is_lost_is_what_trying_shows(asked: Expression, allowed: Expression) -> None:
    answer = conflict(asked, allowed, SCHEMA)
    assert answer.loss == by_trying(asked, allowed)
    if answer.loss is Loss.ALL:
        assert answer.clash
        clash = Call("and", answer.clash) if len(answer.clash) > 1 else answer.clash[0]
        assert not any(holds(clash, each) for each in tuples())


@pytest.mark.parametrize("apart", [-1, 0, 1])
@pytest.mark.parametrize(("one", "two"), list(product(OPERATORS, OPERATORS)))
def test_all_rows_of_the_papers_tables(one: str, two: str, apart: int) -> None:
    """Two comparisons of one attribute, with each order of their constants (002 figure 5)."""
    asked, allowed = compare("b", one, 1), compare("b", two, 1 + apart)
    assert conflict(asked, allowed, SCHEMA).loss == by_trying(asked, allowed)


@pytest.mark.parametrize(
    ("asked", "allowed", "wanted"),
    [
        # Example 3.
        ("a > 5", "a > 8", Loss.PART),
        ("a > 5", "a < 4", Loss.ALL),
        # Example 4.
        ("NOT (a >= 10) AND b = 20", "(a > 20 AND a < 30) OR NOT (a <> 40)", Loss.ALL),
        (None, "a > 8", Loss.PART),
        (None, None, Loss.NOTHING),
        ("a > 8", None, Loss.NOTHING),
        ("a > 8", "a > 5", Loss.NOTHING),
        ("a > 8 AND a < 5", "a > 1", Loss.OWN),
        # No pair of comparisons shows it: the paper's procedure does not find these.
        ("a > b", "b > 5 AND a < 6", Loss.ALL),
        ("a > 5 AND a < 7", "a <> 6", Loss.ALL),
        ("x > 5 AND x < 7", "x <> 6", Loss.PART),
        # NULL fulfils no comparison.
        ("a IS NULL", "a > 5", Loss.ALL),
        ("a IS NULL", "NOT (a > 5)", Loss.ALL),
        ("b IS NULL", "b > 5", Loss.OWN),
        ("a > 5", "a IS NOT NULL", Loss.NOTHING),
        (None, "a = a", Loss.PART),
        (None, "b = b", Loss.NOTHING),
        ("t", "NOT t", Loss.ALL),
        ("s = 'x'", "s <> 'x'", Loss.ALL),
        ("s = 'é'", "s > 'z'", Loss.NOTHING),
        ("s = 'A'", "s = '\\u{41}'", Loss.ALL),
        ("s = '\U000f0000'", "s <> 'x'", Loss.PART),
        ("x > 1", "a > 1", Loss.PART),
        ("x = a AND x > 2.5", "a < 3", Loss.ALL),
        ("at > TIMESTAMP '2026-01-31 12:00:00'", "at < TIMESTAMP '2026-01-31 12:00:00'", Loss.ALL),
        # What a function gives is not known, so it excludes nothing by itself.
        ("upper(s) = 'X'", "s = 'y'", Loss.PART),
        ("upper(s) = 'X' AND a > 5", "a < 4", Loss.ALL),
        ("a + 1 > 5", "a < 2", Loss.PART),
        ("a > 9223372036854775807", "a > 0", Loss.OWN),
    ],
)
def test_cases(asked: str | None, allowed: str | None, wanted: Loss) -> None:
    assert loss(asked, allowed) is wanted


def test_the_parts_that_exclude_each_other_are_told() -> None:
    clash = found("a > 5 AND s = 'x'", "b > 0 AND a < 4").clash
    assert {expression_text(part) for part in clash} == {"a > 5", "a < 4"}


def test_a_hard_condition_is_not_thought_about_for_long() -> None:
    """What is not decided in time may be lost."""
    parts = " AND ".join(f"(a <> {n} OR b <> {n % 7} OR x > {n}.5)" for n in range(60))
    assert loss(parts, "a > 5") is Loss.PART


def test_several_threads_ask_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: loss(f"a > {n}", f"a < {n - 1}"), range(200)))
    assert set(answers) == {Loss.ALL}
