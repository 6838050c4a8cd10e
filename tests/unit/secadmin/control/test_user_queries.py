"""The customised query of paper 002 (section 3.1, figure 4a): what its XML means in SQL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import (
    Aggregate,
    Filter,
    Moving,
    MovingWindow,
    Plan,
    Project,
    Source,
    Window,
    Windowed,
    walk,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.view_plan import ViewedStream, through_views
from secadmin.control.user_queries import user_query_sql
from secadmin.control.xacml_views import xacml_view
from secadmin.languages import parse_sql
from secadmin.xacml.condition import parse_condition
from secadmin.xacml.stream_view import StreamView
from secadmin.xacml.stream_view import Window as StreamWindow
from secadmin.xacml.user_query import read_user_query

WEATHER = Relation(
    3,
    "weather",
    RelationKind.STREAM,
    Schema(
        (
            Attribute("samplingTime", Type.TIMESTAMP, required=True),
            Attribute("temperature", Type.DOUBLE),
            Attribute("rainRate", Type.DOUBLE),
            Attribute("windSpeed", Type.DOUBLE),
        )
    ),
    "samplingTime",
    0,
)
FILTER = "<Filter><FilterCondition>RainRate &gt; 50</FilterCondition></Filter>"
MAP = "<Map><Attribute>SamplingTime</Attribute><Attribute>RainRate</Attribute></Map>"
WINDOW = """<Aggregation><WindowType>time</WindowType><WindowSize>10</WindowSize>
<WindowStep>2</WindowStep><Attribute>lastval(samplingTime)</Attribute>
<Attribute>avg(rainRate)</Attribute></Aggregation>"""

QUERY = """<UserQuery>
 <Stream name="weather" />
 <Filter><FilterCondition> RainRate &gt; 50 </FilterCondition></Filter>
 <Map><Attribute>RainRate</Attribute></Map>
 <Aggregation>
  <WindowType>tuple</WindowType><WindowSize>10</WindowSize><WindowStep>2</WindowStep>
  <Attribute>avg(RainRate)</Attribute>
 </Aggregation>
</UserQuery>"""


class Streams:
    """Resolves the weather, whatever the case of the name."""

    def relation(self, name: str) -> Relation:
        assert name == "weather"
        return WEATHER


def sql(*parts: str) -> str:
    text = f'<UserQuery><Stream name="weather"/>{"".join(parts)}</UserQuery>'
    return user_query_sql(text, Streams().relation)


def plan(*parts: str) -> Plan:
    return parse_sql(sql(*parts), Streams()).plan


def names(of: Plan) -> list[str]:
    assert isinstance(of.root, Project)
    return [column.name for column in of.root.columns]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ((), "SELECT *\nFROM weather"),
        ((FILTER,), "SELECT *\nFROM weather\nWHERE rainRate > 50"),
        ((MAP,), "SELECT samplingTime, rainRate\nFROM weather"),
    ],
)
def test_filter_and_map(parts: tuple[str, ...], wanted: str) -> None:
    assert sql(*parts).replace('"', "") == wanted
    plan(*parts)


def test_the_window_of_figure_4a() -> None:
    made = plan(FILTER, MAP, WINDOW)
    found = {type(node): node for node in walk(made.root)}
    windowed, grouped = found[Windowed], found[Aggregate]
    assert isinstance(windowed, Windowed) and isinstance(grouped, Aggregate)
    assert windowed.window == Window(10_000, 2_000)
    assert sorted(each.function for each in grouped.aggregations) == ["avg", "max"]
    assert Filter in found
    assert set(names(made)) == {"window_start", "avg_rainRate", "max_samplingTime"}


TUPLES = WINDOW.replace(">time<", ">tuple<")


def merge(viewed: ViewedStream, window: str) -> Plan:
    """The plan of the customised query with this window, over the stream as it is shown."""

    class Seen:
        def relation(self, name: str) -> Relation:
            return viewed.relation

    text = f'<UserQuery><Stream name="weather"/>{window}</UserQuery>'
    asked = parse_sql(user_query_sql(text, Seen().relation), Seen()).plan
    return through_views(asked, {WEATHER.object_id: viewed})


def test_the_window_of_tuples_of_figure_4a() -> None:
    """Its filter is below the window, so each window holds ten tuples that fulfil it."""
    made = plan(FILTER, MAP, TUPLES)
    (moving,) = (node for node in walk(made.root) if isinstance(node, Moving))
    assert moving.window == MovingWindow(rows=10, slide_rows=2)
    assert [type(node) for node in walk(moving.input)][:2] == [Source, Filter]
    assert analyse(made).schema.names == ("instant", "max_samplingTime", "avg_rainRate")
    assert sql(TUPLES).startswith("SELECT RSTREAM ")
    assert sql(TUPLES).endswith("FROM weather [ROWS 10 SLIDE 2]")


def test_first_and_last_values() -> None:
    made = plan(WINDOW.replace("avg(rainRate)", "lastval(rainRate)"))
    assert set(names(made)) == {"window_start", "last_rainRate", "max_samplingTime"}


def test_the_map_leaves_what_the_window_aggregates() -> None:
    assert set(names(plan(MAP.replace("SamplingTime", "windSpeed"), WINDOW))) == {
        "window_start",
        "avg_rainRate",
    }


REFUSED: Mapping[str, str] = {
    "<Map><Attribute>windSped</Attribute></Map>": "no attribute 'windsped'; there are: sampling",
    "<Map><Attribute>windSpeed</Attribute></Map>" + WINDOW: "the map leaves none of the attributes",
    "<Sort/>": "not expected here",
    FILTER + FILTER: "not expected here, or not twice",
}


@pytest.mark.parametrize("parts", REFUSED)
def test_what_is_refused(parts: str) -> None:
    with pytest.raises(InvalidInput) as told:
        sql(parts)
    assert REFUSED[parts] in told.value.detail


def test_example_1_in_tuples() -> None:
    """As the paper has it: NEA's windows are of 5 tuples, LTA's of 10, both 2 tuples apart."""
    functions = {("samplingtime", "lastvalue"), ("rainrate", "avg"), ("windspeed", "max")}
    window = StreamWindow("tuple", 5, 2, frozenset(functions))
    shown = frozenset(name for name, _ in functions)
    viewed = ViewedStream(
        WEATHER, xacml_view(StreamView(parse_condition("rainrate > 5"), shown, window), WEATHER)
    )

    merged = partial(merge, viewed)
    nodes = list(walk(merged(TUPLES).root))
    (moving,) = (node for node in nodes if isinstance(node, Moving))
    assert moving.window == MovingWindow(rows=10, slide_rows=2)
    (own,) = (node for node in walk(moving.input) if isinstance(node, Filter))
    assert own.condition == Call(">", (AttributeRef("rainRate"), Literal(5, Type.BIGINT)))
    for other in (WINDOW, TUPLES.replace(">10<", ">4<"), TUPLES.replace(">2<", ">1<")):
        with pytest.raises(InvalidInput, match="windows of tuples, of 5 tuples or more"):
            merged(other)


def test_example_1() -> None:
    """What NEA's policy leaves of LTA's query: conditions by AND, the coarser of the windows."""
    obligations = StreamView(
        parse_condition("rainrate > 5"),
        frozenset({"samplingtime", "rainrate", "windspeed"}),
        StreamWindow(
            "time",
            4,
            2,
            frozenset({("samplingtime", "lastvalue"), ("rainrate", "avg"), ("windspeed", "max")}),
        ),
    )
    viewed = ViewedStream(WEATHER, xacml_view(obligations, WEATHER))

    merged = partial(merge, viewed)
    nodes = list(walk(merged(WINDOW).root))
    assert [n.window for n in nodes if isinstance(n, Windowed)] == [Window(10_000, 2_000)]
    (own,) = (node for node in nodes if isinstance(node, Filter))
    assert own.condition == Call(">", (AttributeRef("rainRate"), Literal(5, Type.BIGINT)))
    with pytest.raises(InvalidInput, match="windows of event time, of 4 seconds or more"):
        merged(WINDOW.replace(">10<", ">2<"))
    with pytest.raises(InvalidInput, match="only as avg"):
        merged(WINDOW.replace("avg(rainRate)", "max(rainRate)"))
    with pytest.raises(InvalidInput, match="no attribute 'temperature'"):
        merged(WINDOW.replace("avg(rainRate)", "avg(temperature)"))


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
