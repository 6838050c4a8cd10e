"""A text that is written of a plan gives exactly this plan when it is read."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.analysis import analyse, analyse_node
from catalog.errors import InvalidInput
from catalog.plan import Aggregate, Column, Emission, Enough, Filter, Node, Plan, Project, Source
from catalog.schema import Type
from secadmin.languages import Unsayable, parse_borealis, parse_sql, sql_text, xml_text
from secadmin.languages.writing.unsayable import PlannedRelations
from tests.differential.make_expression import EXTREME, Expressions
from tests.differential.make_plan import Plans
from tests.differential.make_records import STARTS, Records
from tests.plans import whole
from tests.unit.secadmin.languages.streams import Streams, relation

_HERE = Path(__file__).parent
_SQL = {case["id"]: case["text"] for case in json.loads((_HERE / "sql_plans.json").read_text())}
_DIAGRAMS = {file.stem: file.read_text() for file in sorted((_HERE / "diagrams").iterdir())}
# A key has the name of a window's edge, which SQL would have to qualify.
# A pattern over several streams is written as a Match over their union, which has names of its own.
_NOT_IN_SQL = {"key-named-as-edge", "pattern-seq", "pattern-or"}
# A right tuple is at least a second later, and a buffer has no negative size.
_NOT_AS_DIAGRAM = {"join_of_one_buffer"}


@pytest.mark.parametrize("name", sorted(_SQL.keys() - _NOT_IN_SQL))
def test_sql_as_sql(name: str) -> None:
    plan = parse_sql(_SQL[name], Streams()).plan
    assert parse_sql(sql_text(plan), Streams()).plan == plan


@pytest.mark.parametrize("name", ["pattern-seq", "pattern-or"])
def test_a_pattern_over_several_streams_is_not_said_in_another_way(name: str) -> None:
    with pytest.raises(Unsayable, match="PATTERN SEQ, AND and OR say; `query show` without"):
        sql_text(parse_sql(_SQL[name], Streams()).plan)


def test_borealis_has_no_patterns() -> None:
    with pytest.raises(Unsayable, match="no event patterns"):
        xml_text({"result": parse_sql(_SQL["match-of-with"], Streams()).plan})


def test_borealis_has_no_windows_with_one_size_for_all() -> None:
    outputs = parse_borealis(_DIAGRAMS["windows_by_tuples"], Streams()).outputs
    for output, checked in outputs:
        assert xml_text({output: checked.plan})
        plan = parse_sql(sql_text(checked.plan).replace("]", " OF ALL]"), Streams()).plan
        with pytest.raises(Unsayable, match="no such windows of CQL"):
            xml_text({output: plan})


@pytest.mark.parametrize("name", _DIAGRAMS)
def test_a_diagram_in_both_languages(name: str) -> None:
    try:
        outputs = dict(parse_borealis(_DIAGRAMS[name], Streams()).outputs)
    except InvalidInput:
        return
    plans = {output: checked.plan for output, checked in outputs.items()}
    for plan in plans.values():
        assert parse_sql(sql_text(plan), Streams()).plan == plan
    if name not in _NOT_AS_DIAGRAM:
        again = parse_borealis(xml_text(plans), Streams()).outputs
        assert {output: checked.plan for output, checked in again} == plans


def _plans(seed: int) -> tuple[Plans, Records, Random]:
    random = Random(seed)
    records = Records(random, EXTREME, random.choice(STARTS))
    return Plans(random, Expressions(random, EXTREME), records, f"p{seed}"), records, random


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_any_plan_is_said_exactly_or_refused(seed: int) -> None:
    plans, _, random = _plans(seed)
    node = plans.make(random.randint(1, 6), stateful=True)
    plan = _readable(node)
    if plan is None:
        return
    with suppress(Unsayable):
        text = sql_text(plan)
        assert parse_sql(text, PlannedRelations(plan)).plan == plan
    with suppress(Unsayable):
        text = xml_text({"result": plan})
        ((_, checked),) = parse_borealis(text, PlannedRelations(plan)).outputs
        assert checked.plan == plan


def _readable(node: Node) -> Plan | None:
    try:
        return analyse(whole(node)).plan
    except InvalidInput:
        return None


def test_nearly_all_stateless_plans_can_be_said() -> None:
    """What remains repeats all attributes, or has a text that no query text may have."""
    said = Counter[str]()
    for seed in range(100):
        plans, _, random = _plans(seed)
        plan = whole(plans.make(random.randint(2, 6), stateful=False))
        with suppress(Unsayable):
            sql_text(plan)
            said["sql"] += 1
        with suppress(Unsayable):
            xml_text({"result": plan})
            said["xml"] += 1
    assert min(said["sql"], said["xml"]) >= 80


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(sorted(Type)))
def test_any_expression(seed: int, kind: Type) -> None:
    """Both languages share the text of expressions. Its constants have extreme values."""
    random = Random(seed)
    source = Source(relation("quotes"))
    made = Expressions(random, EXTREME).make(kind, analyse_node(source).schema, 4)
    plan = whole(Project(source, (Column("x", made),)))
    assert parse_sql(sql_text(plan), Streams()).plan == plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT q.bid FROM trades t JOIN quotes q ON t.symbol = q.symbol AND t.ts = q.at", "left"),
        (
            (
                "SELECT length(symbol) AS l, count(*) AS n FROM trades "
                "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), length(symbol)"
            ),
            "compute a key in a map",
        ),
        (
            "SELECT sum(price) / 2 AS half FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
            "name 'agg.0' is not usable",
        ),
    ],
)
def test_a_plan_that_no_diagram_gives(text: str, words: str) -> None:
    with pytest.raises(Unsayable, match=words):
        xml_text({"o": parse_sql(text, Streams()).plan})


def test_a_minimum_of_senders_is_said_by_policies_alone() -> None:
    text = "SELECT count(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)"
    root = parse_sql(text, Streams()).plan.root
    assert isinstance(root, Project) and isinstance(root.input, Aggregate)
    plan = whole(replace(root, input=replace(root.input, enough=Enough(2))))
    words = "only a policy asks for a minimum of senders"
    with pytest.raises(Unsayable, match=words):
        sql_text(plan)
    with pytest.raises(Unsayable, match=words):
        xml_text({"o": plan})


def test_updates_and_shared_parts() -> None:
    text = (
        "SELECT window_end, symbol, count(*) AS n FROM trades WHERE price > 1 "
        "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), symbol EMIT UPDATES"
    )
    plan = parse_sql(text, Streams()).plan
    assert plan.emission is Emission.UPDATES
    assert sql_text(plan).endswith("\nEMIT UPDATES")
    twice = {"a": plan, "b": plan}
    written = xml_text(twice)
    # Filter, aggregate, map, and a union that carries the same tuples to the second output.
    assert written.count("<box") == 4
    again = parse_borealis(written, Streams()).outputs
    assert {name: checked.plan for name, checked in again} == twice


@pytest.mark.parametrize("size", [30, 120])
def test_a_large_plan_takes_no_longer_than_its_text(size: int) -> None:
    """Equal parts are found by their texts, not by comparing whole plans at each step."""
    condition = " OR ".join(f"volume = {number}" for number in range(size))
    text = "SELECT * FROM trades"
    node = parse_sql(text, Streams()).plan.root
    made = parse_sql(f"{text} WHERE {condition}", Streams()).plan.root
    assert isinstance(made, Filter)
    for _ in range(130):
        node = Filter(node, made.condition)
    begin = time.process_time()
    with pytest.raises(Unsayable, match="in 64 KiB"):
        sql_text(whole(node))
    assert time.process_time() - begin < 5
