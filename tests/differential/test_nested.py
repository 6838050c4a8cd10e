"""Functions of nested values: the compiler and the oracle agree on every value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product

from pyspark.sql import SparkSession

from catalog.aggregates import MAX_COLLECTED, MAX_COLLECTED_BYTES, aggregate_rule
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Expression, Literal, type_of
from catalog.functions import MAX_TEXT_BYTES, SCALAR_FUNCTIONS
from catalog.label import Label
from catalog.plan import Aggregation, Column, Node, Project, Source, Window
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, AttributeType, MapType, Schema, StructType, Type, parse_type
from tests.differential.case import Case, Class, Record
from tests.differential.comparing import check_all
from tests.differential.make_expression import EXTREME
from tests.differential.test_functions import signatures
from tests.oracle.nested_values import from_json
from tests.oracle.values import EPOCH, Items, Named, Value, timestamp
from tests.plans import grouped, whole

_REACHES = {1: Label.of(0)}
_CLASSES = (Class(Clearance.of(0)),)
# No double here is one whose shortest text Java 17 does not find.
_PLAIN: dict[Type, list[Value]] = {
    **{kind: [*values] for kind, values in EXTREME.items()},
    Type.DOUBLE: [0.0, -1.5, 1e308, 5e-324, 1e7, 0.001],
    Type.STRING: ["", "a", 'é😀"\\', "a\n\t\x00\x7f", "null", "{}", "[1,2]"],
    Type.TIMESTAMP: [timestamp(0), timestamp(-1), timestamp(253_402_300_799_999_999)],
}
_ARRAYS = {kind: parse_type(f"ARRAY<{kind}>") for kind in Type}
_TEXTS = {
    "MAP<STRING, DOUBLE>": ("{}", '{"a":1.5}', '{"":null,"a":1.0E308}', '{"\\"b\\\\":0.0}'),
    "MAP<STRING, ARRAY<BIGINT>>": ("{}", '{"a":[1,null],"b":[],"c":null}'),
    "STRUCT<f STRING, g ARRAY<BIGINT>>": ("{}", '{"f":"x"}', '{"f":"","g":[1]}', '{"g":[]}'),
    "ARRAY<ARRAY<STRING>>": ("[]", '[["a",null],[],null]', '[["]"],["[,"]]'),
    "ARRAY<MAP<STRING, TIMESTAMP>>": ('[{"a":"1969-12-31T23:59:59.999999Z"},{},null]',),
    "STRUCT<f STRUCT<f STRUCT<f DOUBLE>>>": ('{"f":{"f":{"f":2.5}}}', '{"f":{}}', "{}"),
}


def _pool(kind: AttributeType) -> list[Value]:
    if isinstance(kind, Type):
        return [None, *_PLAIN[kind]]
    found: list[Value] = [None]
    for plain, array in _ARRAYS.items():
        if array == kind:
            several = _PLAIN[plain]
            found += [Items(()), Items((None,)), Items(tuple(several)), Items((*several, None))]
    read = (text for name, texts in _TEXTS.items() if parse_type(name) == kind for text in texts)
    return found + [from_json(_json(text), kind) for text in read]


def _json(text: str) -> object:
    return json.loads(text)


_KINDS = [*_ARRAYS.values(), *map(parse_type, _TEXTS)]
_PLACES = (None, 0, 1, 2, 7, -1, -2, -100, 2**31, 2**63 - 1, -(2**63))
_KEYS = (None, "", "a", '"b\\', "z")


def _calls(kind: AttributeType, whole_: Expression) -> list[Call]:
    """What there is to ask of a nested value."""
    places: list[Literal] = [Literal(place, Type.BIGINT) for place in _PLACES]
    calls = [Call("is_null", (whole_,))]
    if isinstance(kind, MapType):
        places = [Literal(key, Type.STRING) for key in _KEYS]
        calls += [Call(name, (whole_,)) for name in ("map_keys", "map_values")]
    if isinstance(kind, StructType):
        names = [Literal(each.name, Type.STRING) for each in kind.fields]
        return calls + [Call("field", (whole_, name)) for name in names]
    calls += [Call("cardinality", (whole_,)), *(Call("element", (whole_, at)) for at in places)]
    return calls


def _parts_case(kind: AttributeType, name: str) -> Case:
    """All parts of a value, and parts of these parts."""
    relation = _relation(name, kind, Type.BIGINT)
    first = _calls(kind, AttributeRef("a0"))
    asked = list(first)
    for each in first[1:]:
        inner = type_of(each, relation.schema)
        if not isinstance(inner, Type):
            asked += [call for call in _calls(inner, each) if call.function != "is_null"][:4]
    columns = [Column("whole", AttributeRef("a0"))]
    columns += [Column(f"r{n}", call) for n, call in enumerate(asked)]
    if not isinstance(kind, MapType | StructType):
        columns.append(Column("moving", Call("element", (AttributeRef("a0"), AttributeRef("a1")))))
    values = list(product(_pool(kind), (None, 1, -1, 0)))
    return _case(relation, Project(Source(relation), tuple(columns)), values)


def _contains_case(kind: Type, name: str) -> Case:
    relation = _relation(name, _ARRAYS[kind], kind)
    both = (AttributeRef("a0"), AttributeRef("a1"))
    columns = [Column("contains", Call("contains", both))]
    if kind is Type.DOUBLE:
        whole_number = Call("contains", (both[0], Literal(0, Type.BIGINT)))
        columns.append(Column("zero", whole_number))
    values = list(product(_pool(_ARRAYS[kind]), _pool(kind)))
    return _case(relation, Project(Source(relation), tuple(columns)), values)


def _made_case(kind: AttributeType, name: str) -> Case:
    """Arrays that a query makes, and what is in them."""
    relation = _relation(name, kind, kind)
    a, b = AttributeRef("a0"), AttributeRef("a1")
    made = Call("array", (a, b, Literal(None, kind)))
    columns = (
        *(Column("one", Call("array", (a,))), Column("three", made)),
        Column("back", Call("element", (made, Literal(2, Type.BIGINT)))),
        Column("size", Call("cardinality", (made,))),
    )
    values = list(product(_pool(kind), _pool(kind)))
    return _case(relation, Project(Source(relation), columns), values)


_FUNCTIONS = ("collect_list", "collect_set", "topk_1", "topk_100", "topkdistinct_3")


def _groups_case(kind: AttributeType, name: str) -> Case:
    """Groups of NULLs only, of few values, and of more than an array has."""
    relation = _relation(name, Type.BIGINT, kind)
    rules = {function: aggregate_rule(function) for function in _FUNCTIONS}
    fitting = [each for each, rule in rules.items() if rule is not None and rule(kind)]
    pool = _pool(kind)
    if kind is Type.BIGINT:
        pool += range(MAX_COLLECTED + 50)
    if not isinstance(kind, Type):
        pool = [None, *(Named((("f", text),)) for text in ("b", "a", "", "b"))]
    records = [(1, None), (1, None), *((2, each) for each in (*pool, *pool[:5]))]
    return _case(relation, _collected(relation, fitting), records, apart=True)


def _collected(relation: Relation, functions: Sequence[str]) -> Node:
    """The arrays of the groups of the first attribute."""
    return grouped(
        Source(relation),
        Window(1000, 1000),
        (Column("key", AttributeRef("a0")),),
        tuple(Aggregation(f"r{n}", name, AttributeRef("a1")) for n, name in enumerate(functions)),
    )


def test_every_part_and_every_array(interpreted: SparkSession) -> None:
    """All of them in one job."""
    makers: list[tuple[Callable[..., Case], AttributeType]]
    makers = [(_parts_case, each) for each in _KINDS]
    makers += [(_contains_case, each) for each in Type]
    makers += [(_made_case, each) for each in (*Type, *_KINDS[-6:-2])]
    makers += [(_groups_case, each) for each in (*Type, parse_type("STRUCT<f STRING>"))]
    check_all(interpreted, [make(kind, f"v{n}") for n, (make, kind) in enumerate(makers)])


def test_each_function_of_nested_values_is_tried() -> None:
    here = {call.function for kind in _KINDS for call in _calls(kind, AttributeRef("a"))}
    elsewhere = {name for name, _ in signatures()}
    assert here | elsewhere | {"contains", "array"} == set(SCALAR_FUNCTIONS)


def test_no_array_gets_longer_than_a_record(spark: SparkSession) -> None:
    relation = _relation("long", Type.STRING, Type.STRING)
    made = Call("array", (AttributeRef("a0"), AttributeRef("a1")))
    longest = MAX_TEXT_BYTES // (SCALAR_FUNCTIONS["array"].growth or 1)
    values = [("\x01" * (longest - 1 + more), "x") for more in (-1, 0, 1)]
    plan = Project(Source(relation), (Column("size", Call("cardinality", (made,))),))
    collected = _relation("collected", Type.BIGINT, Type.STRING)
    text = "é" * (MAX_COLLECTED_BYTES // 2)
    texts = [(1, text), (1, "x"), (2, text + "a"), (2, "x"), (3, "x")]
    both = [
        _case(relation, plan, values),
        _case(collected, _collected(collected, _FUNCTIONS), texts, apart=True),
    ]
    check_all(spark, both)


def _relation(name: str, *kinds: AttributeType) -> Relation:
    attributes = [Attribute(f"a{n}", kind) for n, kind in enumerate(kinds)]
    schema = Schema((Attribute("ts", Type.TIMESTAMP), *attributes))
    return Relation(1, name, RelationKind.STREAM, schema, "ts", 0)


def _case(
    relation: Relation, plan: Node, values: Sequence[tuple[Value, ...]], *, apart: bool = False
) -> Case:
    """With `apart`, no two tuples have one event time."""
    records = [
        Record((timestamp(n) if apart else EPOCH, *each), "1") for n, each in enumerate(values)
    ]
    return Case(relation.name, whole(plan), {relation.name: records}, _REACHES, _CLASSES)
