"""The obligations of paper 002, and its conditions."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import Denied, InvalidInput
from secadmin.xacml import Assignment, Decision, Duty, Result, decide, read_policy, request_of_xml
from secadmin.xacml.condition import (
    OPERATORS,
    Comparison,
    Condition,
    Junction,
    Negation,
    both,
    parse_condition,
)
from secadmin.xacml.stream_obligations import CONDITION, FILTER, view_of
from secadmin.xacml.stream_view import StreamView, Window
from tests.unit.secadmin.xacml import policy_texts as x

WEATHER = x.policy(
    x.rule()
    + "<ObligationExpressions>"
    + x.obligation("filtering", ("filter-condition", "rainrate &gt; 5", "string"))
    + x.obligation(
        "mapping",
        *(("map-attribute", name, "string") for name in ("samplingtime", "rainrate", "windspeed")),
    )
    + x.obligation(
        "window-aggregation",
        ("window-type", "tuple", "string"),
        ("window-size", "5", "integer"),
        ("window-step", "2", "integer"),
        ("window-attr", "samplingtime:lastval", "string"),
        ("window-attr", "rainrate:avg", "string"),
        ("window-attr", "windspeed:max", "string"),
    )
    + "</ObligationExpressions>",
    aim=x.target("LTA"),
)
ROWS = st.fixed_dictionaries({"a": st.integers(-3, 3), "b": st.integers(-3, 3)})
COMPARISONS = st.builds(
    Comparison,
    st.sampled_from("ab"),
    st.sampled_from(sorted(OPERATORS)),
    st.integers(-3, 3).map(Decimal),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.builds(
            Junction,
            st.sampled_from(("AND", "OR")),
            st.lists(inner, min_size=2, max_size=3).map(tuple),
        ),
    ),
    max_leaves=8,
)


def _view(role: str) -> StreamView:
    return view_of(decide(read_policy(WEATHER), request_of_xml(x.request(role=role))))


def _holds(condition: Condition | None, row: dict[str, int]) -> bool:
    match condition:
        case None:
            return True
        case Comparison(attribute, sign, value):
            return bool(OPERATORS[sign](row[attribute], value))
        case Negation(part):
            return not _holds(part, row)
        case Junction(word, parts):
            return (all if word == "AND" else any)(_holds(part, row) for part in parts)


def test_the_obligations_are_a_view() -> None:
    functions = {("samplingtime", "lastvalue"), ("rainrate", "avg"), ("windspeed", "max")}
    assert _view("LTA") == StreamView(
        Comparison("rainrate", ">", Decimal(5)),
        frozenset({"samplingtime", "rainrate", "windspeed"}),
        Window("tuple", 5, 2, frozenset(functions)),
    )


def test_who_is_not_permitted_has_no_view() -> None:
    with pytest.raises(Denied):
        _view("guest")


@pytest.mark.parametrize(
    "duty",
    [
        Duty("other", ()),
        Duty(FILTER, ()),
        Duty(FILTER, (Assignment(CONDITION, "string", "a > 1"),) * 2),
        Duty(FILTER, (Assignment(CONDITION, "integer", 1),)),
        Duty(FILTER, (Assignment("other", "string", "a > 1"),)),
        Duty(FILTER, (Assignment(CONDITION, "string", "a > 1) OR (a = 1"),)),
    ],
)
def test_an_obligation_that_is_not_understood_denies(duty: Duty) -> None:
    with pytest.raises(Denied):
        view_of(Result(Decision.PERMIT, (duty,)))
    assert view_of(Result(Decision.PERMIT, (Duty(duty.id, duty.assignments, advice=True),))) == (
        StreamView()
    )


@given(CONDITIONS)
def test_a_condition_survives_its_text(condition: Condition) -> None:
    again = parse_condition(str(condition))
    assert str(again) == str(condition)


@given(CONDITIONS, CONDITIONS, ROWS)
def test_both_holds_where_each_holds(one: Condition, two: Condition, row: dict[str, int]) -> None:
    assert _holds(both(one, two), row) == (_holds(one, row) and _holds(two, row))


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a >", "a > b", "a > 'x'", "(a > 1", "a > 1)", "a > 1; b", "NOT", "a = 1 b = 2"),
        *("(" * 50 + "a = 1" + ")" * 50, "NOT " * 50 + "a = 1", "a = 1 AND " * 500 + "a = 1"),
    ],
)
def test_a_wrong_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_condition(text)
