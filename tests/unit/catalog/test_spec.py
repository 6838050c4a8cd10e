"""catalog/SPEC.md: it is about each node, each rule has an example, and the oracle agrees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import get_args

import pytest

from catalog.aggregates import COUNT_DISTINCT
from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.plan import (
    Aggregate,
    Change,
    Emission,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Plan,
    Ranked,
    SessionWindow,
    ToStream,
    Windowed,
    sources,
    walk,
)
from secadmin.languages import parse_sql
from tests.differential.expected import expected
from tests.oracle.schemas import schema_of
from tests.oracle.values import Tuple
from tests.spec import Example, SpecMarket, examples, rules, sections

NODES = {each.__name__ for each in get_args(Node)}
EVERY = pytest.mark.parametrize("example", examples(), ids=lambda each: each.name[:70])


def _plan(example: Example) -> Plan:
    return parse_sql(example.sql, SpecMarket()).plan


def test_each_node_has_a_section() -> None:
    assert {*sections()} - {"Terms"} == NODES | {"Nested", "Emission", "Memory", "Delivery"}


@pytest.mark.parametrize("node", sorted({*NODES, "Nested"}))
def test_a_section_says_what_a_node_keeps_when_it_sends_and_what_absence_tells(node: str) -> None:
    for about in ("*State*: ", "*Sends*: ", "*Absence tells*: "):
        assert about in sections()[node]


def test_each_rule_has_an_example_in_its_section() -> None:
    defined = [rule for text in sections().values() for rule in rules(text)]
    shown = {rule for each in examples() for rule in each.rules}
    assert len(defined) == len({*defined})
    assert shown == {*defined}
    for each in examples():
        assert {rule.partition(".")[0] for rule in each.rules} == {each.section}


@EVERY
def test_the_oracle_gives_what_the_example_says(example: Example) -> None:
    if example.refused:
        with pytest.raises(InvalidInput):
            _plan(example)
        return
    plan = _plan(example)
    assert {type(node).__name__ for node in walk(plan.root)} >= {example.section} & NODES
    schema = schema_of(analyse(plan).root.node)
    assert _same(_results(example, plan), example.results(schema))
    outcome = expected(example.case(plan))
    for (_, table), delivered in zip(example.delivered(), outcome.delivered, strict=True):
        assert _same(delivered, example.read_delivered(table, schema))
    by_class = expected(example.view_case(plan)).delivered
    for (_, table), delivered in zip(example.viewed(), by_class, strict=True):
        assert _same(delivered, example.read_delivered(table, schema))
    by_role = expected(example.exact_case(plan)).delivered
    for (_, table), delivered in zip(example.exact(), by_role, strict=True):
        assert _same(delivered, example.read_delivered(table, schema))


def test_each_operator_that_a_tuple_more_can_harm_has_an_example_with_both_answers() -> None:
    """Strong and view differ there (Delivery.5)."""
    both: set[object] = set()
    for each in examples():
        if each.section == "Delivery":
            strong, view = (
                {table.of.partition(" to ")[2]: table.rows for _, table in tables}
                for tables in (each.delivered(), each.viewed())
            )
            if any(view.get(to, rows) != rows for to, rows in strong.items()):
                both |= {_operator(node) for node in walk(_plan(each).root)}
    harmed = {Aggregate, Windowed, SessionWindow, MovingJoin, Ranked, Match, ToStream, Moving}
    assert both >= harmed | {JoinKind.LEFT, COUNT_DISTINCT, Change.DSTREAM, Change.UPSERT}


def _operator(node: Node) -> object:
    """What a node is, as far as it matters here."""
    match node:
        case Join():
            return node.kind
        case ToStream() if node.change is not Change.ISTREAM:
            return node.change
        case Windowed() if isinstance(node.window, SessionWindow):
            return SessionWindow
        case Aggregate() if any(each.function == COUNT_DISTINCT for each in node.aggregations):
            return COUNT_DISTINCT
    return type(node)


def _results(example: Example, plan: Plan) -> list[Tuple]:
    """By the oracle; with EMIT UPDATES, those of the first records and those of the later ones."""
    case = example.case(plan)
    if plan.emission is Emission.CLOSED:
        return expected(case).results
    first, later = (
        {each.name: example.records(each, later=late) for each in sources(plan)}
        for late in (False, True)
    )
    results = expected(replace(case, records=first), first).results
    return results + (expected(case, later).results if any(later.values()) else [])


def _same(found: list[Tuple], wanted: list[Tuple]) -> bool:
    return Counter(map(_plain, found)) == Counter(map(_plain, wanted))


def _plain(each: Tuple) -> tuple[object, ...]:
    # 1 and 1.0 and TRUE are equal in Python.
    return (each.label, *((type(value), value) for value in each.values))
