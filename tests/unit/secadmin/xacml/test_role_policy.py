"""A policy for a role and a stream, and the view of the role (paper 002, example 1)."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from catalog.expression import Literal
from catalog.relation import Relation, RelationKind
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow
from catalog.schema import Attribute, Schema, Type
from catalog.view_merging import all_of, covers, one_of
from secadmin.control.xacml_views import xacml_view
from secadmin.languages import parse_condition
from secadmin.xacml.role_policy import read_role_policy
from tests.unit.secadmin.xacml import policy_texts as x

WEATHER = Relation(
    1,
    "weather",
    RelationKind.STREAM,
    Schema(
        (
            Attribute("samplingtime", Type.TIMESTAMP, required=True),
            *(Attribute(n, Type.DOUBLE) for n in ("temperature", "RainRate", "windspeed")),
        )
    ),
    "samplingtime",
    0,
)
AIM = x.role_target("LTA", "weather")
ROWS = x.obligation("filtering", ("filter-condition", "RainRate &gt; 5", "string"))
SHOWN = x.obligation(
    "mapping",
    *(("map-attribute", name, "string") for name in ("samplingtime", "rainrate", "windspeed")),
)
WINDOW = x.window(150, 30, "samplingtime:lastval", "rainrate:avg", "windspeed:max")


def text(*obligations: str, aim: str = AIM, rule: str = "") -> str:
    inside = "".join(obligations)
    return x.policy(
        (rule or x.rule()) + f"<ObligationExpressions>{inside}</ObligationExpressions>", aim=aim
    )


def view(*obligations: str) -> RoleView:
    return xacml_view(read_role_policy(text(*obligations)).view, WEATHER)


def test_example_1_is_a_view() -> None:
    found = read_role_policy(text(ROWS, SHOWN, WINDOW))
    assert (found.name, found.role, found.stream) == ("p", "LTA", "weather")
    assert view(ROWS, SHOWN, WINDOW) == RoleView(
        parse_condition("RainRate > 5", WEATHER.schema),
        (
            AttributeRight("samplingtime", None, ("max",)),
            AttributeRight("RainRate", None, ("avg",)),
            AttributeRight("windspeed", None, ("max",)),
        ),
        SmallestWindow(150_000, 30_000),
    )


def test_attributes_without_a_window_are_shown() -> None:
    names = ("samplingtime", "RainRate", "windspeed")
    assert view(SHOWN) == RoleView(None, tuple(map(AttributeRight, names)))


def test_what_the_map_hides_is_not_aggregated() -> None:
    shown = x.obligation("mapping", ("map-attribute", "rainrate", "string"))
    assert view(shown, WINDOW).attributes == (
        AttributeRight("samplingtime", None, ()),
        AttributeRight("RainRate", None, ("avg",)),
    )


OTHER = x.attribute("urn:oasis:names:tc:xacml:1.0:subject:subject-id")
AND_USER = f'<Match MatchId="{x.ONE}string-equal">{x.literal("joe")}{OTHER}</Match>'
ON_TIME = x.call("string-equal", x.literal("a"), x.call("string-one-and-only", x.attribute("day")))
BY_DAY = x.call(
    "time-greater-than",
    x.call("time-one-and-only", x.attribute(x.CURRENT_TIME, "time", category=x.ENVIRONMENT)),
    x.literal("08:00:00", "time"),
)
NO_POLICY = [
    (text(ROWS, aim=x.target("LTA")), "<Target>: the Target does not name a stream"),
    (text(ROWS, aim=x.target()), "<Target>: the Target does not name a role"),
    (
        text(ROWS, aim=x.role_target("LTA", "weather", AND_USER)),
        "<AttributeDesignator>: the Target of a role's policy names a role, a stream and",
    ),
    (text(ROWS, rule=x.rule(condition=ON_TIME)), "more than its role and stream: day"),
    (text(ROWS, rule=x.rule(condition=BY_DAY)), f"more than its role and stream: {x.CURRENT_TIME}"),
    (text(ROWS, rule=x.rule("Permit", x.literal("false", "boolean"))), "do not permit this"),
    (
        text(ROWS, x.obligation("counting")),
        "<ObligationExpression>: an obligation cannot be fulfilled: the obligation exacml:obliga",
    ),
    (text(x.window(5, 2, "a:avg"), x.window(5, 3, "a:avg")), "<Policy>: an obligation cannot"),
    (x.policy_set(""), "<Target>: the Target does not name a role"),
    (x.request(), "a Policy or a PolicySet is expected"),
    (
        text(ROWS, aim=x.role_target("LTA", "weather", x.action("send"))),
        "<AttributeValue>: a policy says what a role reads: the action is read",
    ),
    (text(ROWS, aim=x.role_target("LTA", "weather", x.action() * 2)), "action-id is named twice"),
    (
        x.policy_set(x.policy(x.rule(), aim=x.target("a", name="team")), aim=AIM),
        "more than its role and stream: team",
    ),
    (text(x.obligation("filtering")), "<ObligationExpression>: an obligation cannot be fulfilled"),
]


@pytest.mark.parametrize(("xml", "told"), NO_POLICY)
def test_what_is_no_policy_of_a_role_is_refused_with_its_place(xml: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_role_policy(xml)
    assert told in refused.value.detail
    assert refused.value.position is not None


def test_a_policy_that_denies_shows_nothing_whatever_else_holds() -> None:
    """Its obligations are for who is permitted. A rule that denies overrides one that permits."""
    both = text(ROWS, SHOWN, rule=x.rule() + x.rule("Deny"))
    for each in (text(ROWS, rule=x.rule("Deny")), both):
        denied = xacml_view(read_role_policy(each).view, WEATHER)
        assert denied == RoleView(Literal(False, Type.BOOLEAN))
        permitted = view(ROWS, SHOWN, WINDOW)
        for together in (all_of([denied, permitted]), all_of([permitted, denied])):
            assert together.rows == denied.rows
            assert covers(denied, together) and not covers(denied, permitted)
        assert one_of([denied, permitted]) == permitted, "another role's policy"


def test_a_policy_may_say_that_it_is_about_reading() -> None:
    aim = x.role_target("LTA", "weather", x.action())
    assert read_role_policy(text(ROWS, SHOWN, aim=aim)) == read_role_policy(text(ROWS, SHOWN))
    # A rule for another action says nothing about reading.
    send = x.rule(
        "Deny", inside=f"<Target><AnyOf><AllOf>{x.action('send')}</AllOf></AnyOf></Target>"
    )
    assert read_role_policy(text(ROWS, rule=x.rule() + send)) == read_role_policy(text(ROWS))
    read = send.replace(">send<", ">read<")
    assert read_role_policy(text(ROWS, rule=x.rule() + read)).view.denied
    with pytest.raises(InvalidInput, match="do not permit this"):
        read_role_policy(text(ROWS, rule=send.replace("Deny", "Permit")))


def test_a_policy_set_is_combined_into_one_view() -> None:
    rows, shown = (text(each, aim=x.target()) for each in (ROWS, SHOWN))
    found = read_role_policy(x.policy_set(rows + shown, aim=AIM))
    assert (found.name, found.role, found.stream) == ("s", "LTA", "weather")
    assert xacml_view(found.view, WEATHER) == view(ROWS, SHOWN)
    denies = text(SHOWN, aim=x.target(), rule=x.rule("Deny"))
    assert read_role_policy(x.policy_set(rows + denies, aim=AIM)).view.denied
    # A part that is about another role says nothing.
    other = text(SHOWN, aim=x.target("NEA"))
    assert xacml_view(read_role_policy(x.policy_set(rows + other, aim=AIM)).view, WEATHER) == view(
        ROWS
    )


def test_a_window_of_tuples_is_a_view() -> None:
    functions = ("samplingtime:lastval", "rainrate:avg", "windspeed:max")
    assert view(x.window(5, 2, *functions, kind="tuple")) == RoleView(
        None,
        (
            AttributeRight("samplingtime", None, ("max",)),
            AttributeRight("RainRate", None, ("avg",)),
            AttributeRight("windspeed", None, ("max",)),
        ),
        TupleWindow(5, 2),
    )


def test_first_and_last_values() -> None:
    found = view(x.window(5, 2, "rainrate:lastval", "windspeed:firstval", "rainrate:avg"))
    assert found.attributes == (
        AttributeRight("samplingtime", None, ()),
        AttributeRight("RainRate", None, ("avg", "last")),
        AttributeRight("windspeed", None, ("first",)),
    )


@pytest.mark.parametrize(
    ("obligation", "told"),
    [
        (x.window(5, 2, "rainrate:avg", kind="tuple"), "let the role use samplingtime with max"),
        (x.window(1, 1, "samplingtime:max", kind="tuple"), "a window of tuples has 2 to 10000"),
        (x.window(5, 6, "samplingtime:max", kind="tuple"), "a slide of 1 to its size"),
        (x.window(5, 9, "rainrate:avg"), "its slide at most its size"),
        (x.window(5, 2, "pressure:avg"), "weather has no attribute 'pressure'"),
        (x.obligation("mapping", ("map-attribute", "snow", "string")), "no attribute 'snow'"),
        (
            x.obligation("filtering", ("filter-condition", "samplingtime &gt; 5", "string")),
            "rows, line 1",
        ),
    ],
)
def test_what_the_stream_cannot_enforce_is_refused(obligation: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        view(obligation)
    assert told in refused.value.detail
