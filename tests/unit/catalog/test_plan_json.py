"""Stored plans: every plan comes back as it was; anything else is refused."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.aggregates import AGGREGATE_FUNCTIONS
from catalog.clearance import Clearance
from catalog.errors import Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import SCALAR_FUNCTIONS
from catalog.label import Label
from catalog.pattern import (
    Definition,
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
    Skip,
    SkipTo,
)
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Emission,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Plan,
    Project,
    Source,
    ToStream,
    Union,
    Window,
    Windowed,
)
from catalog.plan_json import decode, encode
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, IngestRun, IngestStream, QueryRun, Run, fingerprint
from catalog.schema import Attribute, Schema, Type
from catalog.stored_form import VERSION, from_stored, to_stored
from tests.plans import whole

names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
positions = st.none() | st.builds(Position, st.integers(1, 99), st.integers(1, 99))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
references = st.builds(AttributeRef, names, positions)
literals = st.builds(Literal, values, st.sampled_from(Type), positions)


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    arguments = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Call, st.sampled_from(sorted(SCALAR_FUNCTIONS)), arguments, positions)


expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(references, literals), _calls, max_leaves=6
)
labels = st.frozensets(st.integers(0, 200), max_size=5).map(lambda bits: Label.of(*bits))
attributes = st.builds(Attribute, names, st.sampled_from(Type), st.booleans())
schemas = st.lists(attributes, max_size=4, unique_by=lambda a: a.name).map(
    lambda found: Schema(tuple(found))
)
texts = st.lists(names, max_size=3).map(tuple)
declared = st.builds(
    DeclaredAggregate,
    *(st.integers(1, 10_000), texts, texts, st.integers(1, 99), st.integers(0, 99)),
    st.integers(0, 99),
)
relations = st.builds(
    Relation,
    *(st.integers(1, 99), names, st.sampled_from(RelationKind), schemas, st.none() | names),
    *(st.integers(0, 10_000), st.booleans(), st.none() | declared),
)
columns = st.lists(st.builds(Column, names, expressions), max_size=3).map(tuple)
windows = st.builds(Window, st.integers(1, 10_000), st.integers(1, 10_000))
moving_windows = st.builds(
    MovingWindow,
    *(st.none() | st.integers(0, 10_000), st.none() | st.integers(1, 99)),
    *(st.lists(references, max_size=2).map(tuple), st.none() | st.integers(1, 10_000)),
)
aggregation = st.builds(
    Aggregation, names, st.sampled_from(sorted(AGGREGATE_FUNCTIONS)), st.none() | expressions
)
aggregations = st.lists(aggregation, max_size=2).map(tuple)
readings = st.lists(
    st.builds(
        Reading,
        *(names, names, st.none() | names, st.none() | expressions),
        *(st.integers(0, 9), st.integers(-9, 9), st.booleans()),
    ),
    max_size=2,
).map(tuple)
patterns: st.SearchStrategy[Pattern] = st.recursive(
    st.builds(PatternVariable, names),
    lambda inner: st.one_of(
        st.builds(PatternSequence, st.lists(inner, max_size=2).map(tuple)),
        st.builds(PatternChoice, st.lists(inner, max_size=2).map(tuple)),
        st.builds(
            PatternRepeat, inner, st.integers(0, 9), st.none() | st.integers(0, 9), st.booleans()
        ),
    ),
    max_leaves=3,
)


def _nodes(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    times = st.integers(-10_000, 10_000)
    equal = st.lists(st.tuples(references, references), max_size=2).map(tuple)
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Filter, inner, expressions),
        st.builds(Project, inner, columns),
        st.builds(Union, several),
        st.builds(Windowed, inner, windows),
        st.builds(Aggregate, inner, columns, aggregations),
        st.builds(Join, inner, inner, equal, times, times, st.none() | expressions),
        st.builds(Moving, inner, moving_windows),
        st.builds(MovingJoin, inner, inner, equal, st.none() | expressions),
        st.builds(
            Match,
            *(inner, st.lists(references, max_size=2).map(tuple), readings, patterns),
            st.integers(1, 10_000),
            st.lists(st.builds(Definition, names, expressions), max_size=2).map(tuple),
            readings,
            st.builds(Skip, st.sampled_from(SkipTo), st.none() | names),
            texts,
            st.booleans(),
        ),
        st.builds(ToStream, inner, st.sampled_from(Change)),
    )


nodes: st.SearchStrategy[Node] = st.recursive(st.builds(Source, relations), _nodes, max_leaves=4)
plans = st.builds(Plan, nodes, st.sampled_from(Emission))


@given(plans)
def test_a_plan_comes_back_as_it_was(plan: Plan) -> None:
    back = from_stored(Plan, json.loads(json.dumps(to_stored(plan))))
    # Equality leaves positions out, and takes 1 for 1.0 and true; the text does not.
    assert back == plan
    assert repr(back) == repr(plan)


@pytest.mark.parametrize("bit", [0, 63, 64, 1_200, 20_000])
def test_a_label_of_any_length_is_stored(bit: int) -> None:
    label = Label.of(1, bit)
    assert decode(json.loads(json.dumps(encode(label)))) == label


SOURCE = encode(Source(Relation(1, "in1", RelationKind.STREAM, Schema(()), None, 0)))
DAMAGED: dict[str, Any] = {
    "empty": {},
    "no node": {"relation": 1},
    "unknown node": {"node": "System"},
    "a node that is no text": {"node": ["Source"]},
    "not a plan": encode(Label.of(1)),
    "a relation": SOURCE["relation"],
    "missing field": {"node": "Source"},
    "extra field": {**SOURCE, "bypass": True},
    "unreadable label": {
        "node": "Source",
        "relation": {**SOURCE["relation"], "name": {"node": "Label", "words": "x"}},
    },
    "label without words": {"node": "Label", "bits": 3},
    "unknown enum": {"node": "Source", "relation": {**SOURCE["relation"], "kind": "topic"}},
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_plan_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not a stored|is not a valid"):
        from_stored(Plan, {"version": VERSION, "value": data})


@pytest.mark.parametrize("name", sorted(DAMAGED.keys() - {"not a plan", "a relation"}))
def test_a_plan_over_a_damaged_node_is_refused(name: str) -> None:
    root = DAMAGED[name]
    damaged = {"node": "Plan", "root": root, "emission": "closed"}
    with pytest.raises(ValueError, match=r"not a stored|is not a valid"):
        from_stored(Plan, {"version": VERSION, "value": damaged})


RELATION = Relation(1, "in1", RelationKind.STREAM, Schema(()), None, 0)


IGNORING = RecordFormat(unknown_fields=UnknownFields.IGNORE)


def _query_run(**changed: Any) -> QueryRun:
    base: dict[str, Any] = {
        "name": "query-2",
        "plan": whole(Source(RELATION)),
        "sources": Label.of(20_000),
        "starting_offsets": {},
    }
    fed = FedOutput(RELATION, (FanOutClass("out.o.a", Clearance.of(20_000)),))
    own = {each.name: changed.pop(each.name) for each in fields(FedOutput) if each.name in changed}
    return QueryRun(**{**base, "outputs": (replace(fed, **own),), **changed})


def test_a_fingerprint_changes_with_what_a_run_depends_on() -> None:
    runs: list[Run] = [
        _query_run(),
        _query_run(labelled=True),
        _query_run(classes=()),
        _query_run(classes=(FanOutClass("out.o.a", Clearance.of(1)),)),
        _query_run(classes=(FanOutClass("out.o.a", Clearance.of(20_000), weak=True),)),
        _query_run(classes=(FanOutClass("out.o.a", Clearance.of(20_000), beyond=Clearance()),)),
        _query_run(classes=(FanOutClass("out.o.a", Clearance.of(20_000), beyond=Clearance.of(1)),)),
        _query_run(classes=(FanOutClass("out.o.a", Clearance.of(20_000), id=2),)),
        _query_run(placement=Placement.SOURCES),
        _query_run(sources=Label.of(1)),
        _query_run(reaches={1: Label.of(20_000)}),
        _query_run(reaches={1: Label.of(20_001)}),
        _query_run(reaches={2: Label.of(20_000)}),
        _query_run(plan=whole(Union((Source(RELATION), Source(RELATION))))),
        _query_run(plan=Plan(Source(RELATION), Emission.UPDATES)),
        IngestRun("ingest-1", (IngestStream(RELATION, Label.of(20_000), 1, 2),)),
        IngestRun("ingest-1", (IngestStream(RELATION, Label.of(1), 1, 2),)),
        IngestRun("ingest-1", (IngestStream(RELATION, Label.of(1), 1, 3),)),
        *(
            IngestRun("ingest-1", (IngestStream(RELATION, Label.of(1), 1, 3, written),))
            for written in (RecordFormat(times=TimeFormat.EPOCH_S), IGNORING)
        ),
    ]
    assert len({fingerprint(run) for run in runs}) == len(runs)
    assert fingerprint(_query_run()) == fingerprint(_query_run(starting_offsets={"lab.in1": {}}))
