"""UNNEST: what its tuples have, and what is refused."""

from __future__ import annotations

import pytest

from catalog.analysis import analyse_node
from catalog.canonical import canonical_form
from catalog.errors import InvalidInput
from catalog.expression import Expression
from catalog.plan import Change, Column, Filter, Moving, MovingWindow, Project, ToStream, Unnest
from catalog.plan_memory import memory_ms
from catalog.schema import ArrayType, Attribute, Type
from catalog.single_tuples import of_single_tuples
from tests.plans import checked, grouped, whole
from tests.unit.catalog.plans import COUNT, MINUTE, PLACE, SOURCE, call, column, ref

SYMBOL = ref("symbol")
SYMBOLS = call("array", SYMBOL)


def unnest(array: Expression = SYMBOLS, **other: str | bool) -> Unnest:
    return Unnest(SOURCE, array, "each", **other)  # type: ignore[arg-type]


def test_the_element_comes_behind_the_attributes_and_may_be_null() -> None:
    made = analyse_node(unnest())
    assert made.schema.attributes == (*SOURCE.schema.attributes, Attribute("each", Type.STRING))
    assert (made.event_time, made.keeps_state) == (SOURCE.relation.event_time, False)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_place_is_null_only_where_a_tuple_without_elements_stays(keeps: bool) -> None:
    places = analyse_node(unnest(number="nth", keeps=keeps)).schema.attributes[-1]
    assert places == Attribute("nth", Type.BIGINT, required=not keeps)


def test_an_element_may_be_nested() -> None:
    inner = analyse_node(unnest(call("array", SYMBOLS))).schema.get("each")
    assert inner is not None and inner.type == ArrayType(Type.STRING)


@pytest.mark.parametrize("name", ["symbol", "each"])
def test_names_differ(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{name}' is there twice"):
        analyse_node(Unnest(SOURCE, SYMBOLS, name, "each"))


def test_only_arrays_have_elements() -> None:
    with pytest.raises(InvalidInput, match="UNNEST takes an array, and this is string") as refused:
        analyse_node(unnest(ref("symbol")))
    assert refused.value.position == PLACE


def test_one_array_on_the_way_to_a_result() -> None:
    """Each of them may make a thousand tuples of one."""
    again = call("array", ref("each"))
    for below in (unnest(), Filter(unnest(), call("is_null", ref("each")))):
        with pytest.raises(InvalidInput, match="one array on the way to a result"):
            analyse_node(Unnest(below, again, "second"))
    windows = grouped(unnest(), MINUTE, (), (COUNT,))
    with pytest.raises(InvalidInput, match="one array on the way to a result"):
        analyse_node(Unnest(windows, call("array", ref(COUNT.name)), "second"))


def test_it_goes_over_streams_and_a_moving_window_over_it() -> None:
    relation = Moving(SOURCE, MovingWindow(rows=2))
    with pytest.raises(InvalidInput, match="a moving window gives a relation"):
        analyse_node(Unnest(relation, SYMBOLS, "each"))
    stream = ToStream(Moving(unnest(), MovingWindow(rows=2)), Change.ISTREAM)
    assert analyse_node(stream).schema.names[-1] == "each"


def test_each_of_its_tuples_depends_on_one_alone() -> None:
    plan = whole(Project(unnest(), (column("each"),)))
    assert of_single_tuples(plan)
    assert memory_ms(checked(plan).root) == 0


def test_what_a_result_depends_on_is_in_the_canonical_form() -> None:
    changes = (
        unnest(),
        *(unnest(number="nth"), unnest(keeps=True), unnest(call("array", ref("symbol"), SYMBOL))),
    )
    plans = [Project(each, (Column("x", ref("each")),)) for each in changes]
    assert len({canonical_form(checked(each)) for each in plans}) == len(plans)
