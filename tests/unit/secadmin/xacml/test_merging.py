"""The obligations of paper 002 and their merging with a user's query: its examples 1 and 2."""

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
from secadmin.xacml.merging import merge
from secadmin.xacml.stream_obligations import CONDITION, FILTER, view_of
from secadmin.xacml.stream_view import StreamView, Window
from secadmin.xacml.user_query import read_user_query
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
QUERY = """<UserQuery>
 <Stream name="weather" />
 <Filter><FilterCondition> RainRate &gt; 50 </FilterCondition></Filter>
 <Map><Attribute>RainRate</Attribute></Map>
 <Aggregation>
  <WindowType>tuple</WindowType><WindowSize>10</WindowSize><WindowStep>2</WindowStep>
  <Attribute>avg(RainRate)</Attribute>
 </Aggregation>
</UserQuery>"""
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


def test_example_1() -> None:
    query = read_user_query(QUERY)
    merged = merge(_view("LTA"), query.view)
    assert query.stream == "weather"
    assert merged.view == StreamView(
        Comparison("rainrate", ">", Decimal(50)),
        frozenset({"rainrate"}),
        Window("tuple", 10, 2, frozenset({("rainrate", "avg")})),
    )
    assert merged.left_out == frozenset()


def test_a_view_without_a_query_is_the_policys() -> None:
    assert merge(_view("LTA"), StreamView()).view == _view("LTA")


def test_who_is_not_permitted_has_no_view() -> None:
    with pytest.raises(Denied):
        _view("guest")


@pytest.mark.parametrize("size", [3, 4, 5])
def test_example_2_each_coarser_window_is_merged_on_its_own(size: int) -> None:
    functions = frozenset({("a", "sum")})
    policy = StreamView(window=Window("tuple", 3, 2, functions))
    wanted = Window("tuple", size, 2, functions)
    assert merge(policy, StreamView(window=wanted)).view.window == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        Window("tuple", 2, 2, frozenset({("a", "sum")})),
        Window("tuple", 3, 1, frozenset({("a", "sum")})),
        Window("time", 3, 2, frozenset({("a", "sum")})),
        Window("tuple", 3, 2, frozenset({("a", "max")})),
        Window("tuple", 3, 2, frozenset({("b", "sum")})),
    ],
)
def test_a_finer_or_other_window_is_denied(wanted: Window) -> None:
    policy = StreamView(window=Window("tuple", 3, 2, frozenset({("a", "sum")})))
    with pytest.raises(Denied):
        merge(policy, StreamView(window=wanted))


def test_what_is_left_out_is_named() -> None:
    query = StreamView(attributes=frozenset({"rainrate", "humidity"}))
    merged = merge(StreamView(attributes=frozenset({"rainrate"})), query)
    assert merged.view.attributes == frozenset({"rainrate"})
    assert merged.left_out == {"humidity"}
    with pytest.raises(Denied, match="none of the attributes"):
        merge(StreamView(attributes=frozenset({"windspeed"})), query)


def test_a_condition_names_only_what_is_shown() -> None:
    query = StreamView(parse_condition("humidity > 3"))
    with pytest.raises(Denied, match="without a right: humidity"):
        merge(_view("LTA"), query)
    with pytest.raises(Denied, match="window of time"):
        merge(StreamView(window=Window("time", 5, 5, frozenset({("humidity", "avg")}))), query)


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


@given(CONDITIONS, CONDITIONS, ROWS)
def test_a_query_never_shows_more(one: Condition, two: Condition, row: dict[str, int]) -> None:
    merged = merge(StreamView(one), StreamView(two)).view
    assert _holds(one, row) or not _holds(merged.condition, row)


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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<Stream name="weather" />', ""),
        ("<WindowSize>10</WindowSize>", "<WindowSize>ten</WindowSize>"),
        ("<WindowSize>10</WindowSize>", "<WindowSize>0</WindowSize>"),
        ("<WindowType>tuple</WindowType>", ""),
        ("avg(RainRate)", "RainRate"),
        ("avg(RainRate)", "median(RainRate)"),
        ("<Map><Attribute>RainRate</Attribute></Map>", "<Map/>"),
        ("RainRate &gt; 50", "RainRate"),
        ("<Filter>", "<Filter/><Filter>"),
    ],
)
def test_a_wrong_user_query_is_refused_with_its_place(old: str, new: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_user_query(QUERY.replace(old, new, 1))
    assert caught.value.position is not None
