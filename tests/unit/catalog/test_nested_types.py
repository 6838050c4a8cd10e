"""Nested types: their texts, their limits, and what is stored of them."""

from __future__ import annotations

import json

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Plan,
    Project,
    Source,
    Window,
    Windowed,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import (
    MAX_TYPE_DEPTH,
    MAX_TYPE_PARTS,
    ArrayType,
    Attribute,
    AttributeType,
    MapType,
    Schema,
    StructField,
    StructType,
    Type,
    check_definition,
    check_type,
    depth_of,
    held_as,
    is_comparable,
    parse_type,
)
from catalog.stored_form import from_stored, to_stored

ITEM = StructType((StructField("name", Type.STRING), StructField("n", Type.BIGINT)))
TEXTS: dict[str, AttributeType] = {
    "ARRAY<STRING>": ArrayType(Type.STRING),
    " array < varchar > ": ArrayType(Type.STRING),
    "Map<String,Double>": MapType(Type.DOUBLE),
    "ARRAY<STRUCT<name STRING, n INT>>": ArrayType(ITEM),
    'struct<`name`: string, "n" : bigint>': ITEM,
    "ROW<name TEXT, n LONG>": ITEM,
    "STRUCT<map MAP<VARCHAR, ARRAY<BOOLEAN>>, array TIMESTAMP>": StructType(
        (
            StructField("map", MapType(ArrayType(Type.BOOLEAN))),
            StructField("array", Type.TIMESTAMP),
        )
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_is_read_from_its_text(text: str) -> None:
    found = parse_type(text)
    assert found == TEXTS[text]
    assert parse_type(str(found)) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("array", "say what is in the array, such as ARRAY<BIGINT>"),
        ("MAP", "say what is in the map"),
        ("struct", "say what is in the struct"),
        ("array<", "a type belongs behind 'array<'"),
        ("array<>", "a type belongs behind 'array<'"),
        ("array<bigint", "'>' belongs behind 'array<bigint'"),
        ("array<bigint>>", "more behind the type"),
        ("array<bigint> x", "more behind the type"),
        ("array<blob>", "unknown type 'blob'"),
        ("list<bigint>", "unknown type 'list' before <"),
        ("bigint<string>", "unknown type 'bigint' before <"),
        ("map<bigint, string>", "the keys of a map are strings"),
        ("map<string>", "',' belongs behind"),
        ("struct<bigint>", "a type belongs behind"),
        ("struct<a bigint,>", "a field's name belongs"),
        ("struct<a bigint, a string>", "the field 'a' twice"),
        ("struct<__a bigint>", "attribute name '__a' is not usable"),
        ("struct<`a b` bigint>", "attribute name 'a b' is not usable"),
        ("array<" * 5 + "bigint" + ">" * 5, f"at most {MAX_TYPE_DEPTH} arrays"),
        ("array<" * 1_000, f"at most {MAX_TYPE_DEPTH} arrays"),
        ("array<" + "x" * 9_000 + ">", "at most 8000 characters"),
        (
            f"struct<{', '.join(f'a{n} bigint' for n in range(MAX_TYPE_PARTS))}>",
            f"at most {MAX_TYPE_PARTS} parts",
        ),
    ],
)
def test_what_is_no_type_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_type(text)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_schema_has_a_limited_number_of_parts_together() -> None:
    half = parse_type(f"struct<{', '.join(f'a{n} bigint' for n in range(MAX_TYPE_PARTS // 2))}>")
    check_definition(Schema((Attribute("a", half), Attribute("n", Type.BIGINT))))
    with pytest.raises(InvalidInput, match="parts together"):
        check_definition(Schema((Attribute("a", half), Attribute("b", half))))


def test_types_that_were_not_read_are_checked_too() -> None:
    for wrong in (StructType(()), StructType((*ITEM.fields, *ITEM.fields))):
        with pytest.raises(InvalidInput, match="structure"):
            check_type(wrong)
    deep: AttributeType = Type.BIGINT
    for _ in range(MAX_TYPE_DEPTH + 1):
        deep = MapType(deep)
    assert depth_of(deep) == MAX_TYPE_DEPTH + 1
    with pytest.raises(InvalidInput, match="inside each other"):
        check_definition(Schema((Attribute("a", deep),)))


def test_a_nested_value_is_held_as_a_text() -> None:
    assert {held_as(kind) for kind in TEXTS.values()} == {Type.STRING}
    assert [held_as(kind) for kind in Type] == [*Type]


@pytest.mark.parametrize("text", TEXTS)
def test_values_without_doubles_are_compared(text: str) -> None:
    assert is_comparable(TEXTS[text]) == ("double" not in str(TEXTS[text]))


SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        *(Attribute(f"a{n}", kind) for n, kind in enumerate(TEXTS.values())),
    )
)


def test_schemas_and_plans_are_stored_with_nested_types() -> None:
    relation = Relation(1, "orders", RelationKind.STREAM, SCHEMA, "ts", 0)
    name = Call("field", (AttributeRef("a4"), Literal("name", Type.STRING)))
    nothing = Call("is_null", (Literal(None, TEXTS["ARRAY<STRING>"]),))
    plan = Plan(Project(Filter(Source(relation), nothing), (Column("name", name),)))
    for kind, value in ((Schema, SCHEMA), (Relation, relation), (Plan, plan)):
        stored = json.loads(json.dumps(to_stored(value)))
        assert from_stored(kind, stored) == value


@pytest.mark.parametrize("text", ["array", "ARRAY<BIGINT>", "array<blob>", "array<bigint>>", 1])
def test_another_text_is_no_stored_type(text: object) -> None:
    stored = to_stored(Schema((Attribute("a", ArrayType(Type.BIGINT)),)))
    stored["value"]["attributes"][0]["type"] = text
    with pytest.raises(ValueError, match="not a stored type"):
        from_stored(Schema, stored)


def test_groups_and_keys_are_compared_and_orders_are_of_plain_values() -> None:
    relation = Relation(1, "orders", RelationKind.STREAM, SCHEMA, "ts", 0)

    def grouped(name: str) -> Plan:
        windows = Windowed(Source(relation), Window(1_000, 1_000))
        keys = (Column("key", AttributeRef(name)),)
        return Plan(Aggregate(windows, keys, (Aggregation("n", "count", None),)))

    assert analyse(grouped("a0")).schema.get("key") == Attribute("key", TEXTS["ARRAY<STRING>"])
    with pytest.raises(InvalidInput, match="a group compares values, and map<string, double>"):
        analyse(grouped("a2"))
