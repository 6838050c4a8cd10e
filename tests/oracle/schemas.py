"""What the tuples of a node are: their attributes, and which of these is their time."""

from __future__ import annotations

from functools import lru_cache

from catalog.expression import AttributeRef
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Unnest,
    Windowed,
)
from catalog.schema import ArrayType, Attribute, AttributeType, Schema, Type
from tests.oracle.matching import reading_type
from tests.oracle.types import type_of


@lru_cache(maxsize=1_000)
def schema_of(node: Node) -> Schema:
    """The names and types of a node's attributes. None of them is said to be required."""
    match node:
        case Source(relation, shows_level):
            level = (Attribute("level", Type.STRING),) if shows_level else ()
            return Schema((*relation.schema.attributes, *level))
        case Filter(below) | Windowed(below) | Moving(below):
            return schema_of(below)
        case Unnest(below, array, name, number):
            given = schema_of(below)
            whole = type_of(array, given)
            assert isinstance(whole, ArrayType)
            added = [(name, whole.element), *([] if number is None else [(number, Type.BIGINT)])]
            return Schema((*given.attributes, *_schema(added).attributes))
        case Ranked(below, number=number, neighbours=neighbours):
            given = schema_of(below)
            numbers = [] if number is None else [(number, Type.BIGINT)]
            others = [(each.name, type_of(each.attribute, given)) for each in neighbours]
            return Schema((*given.attributes, *_schema([*numbers, *others]).attributes))
        case ToStream(below, change):
            deleted = [("deleted", Type.BOOLEAN)] if change is Change.UPSERT else []
            first = _schema([("instant", Type.TIMESTAMP), *deleted]).attributes
            return Schema((*first, *schema_of(below).attributes))
        case Match(below, partition, measures):
            given = schema_of(below)
            keys = [(each.name, type_of(each, given)) for each in partition]
            if node.per_row:
                keys = [(each.name, each.type) for each in given.attributes]
            read = ((each.name, reading_type(each, given)) for each in measures)
            return _schema([("match_time", Type.TIMESTAMP), *keys, *read])
        case Union(several):
            return schema_of(several[0])
        case Project(below, columns):
            return _schema([_column(column, schema_of(below)) for column in columns])
        case Join(left, kind=kind) | MovingJoin(left, kind=kind) if not kind.shows_right:
            return schema_of(left)
        case Join(left, right) | MovingJoin(left, right):
            return Schema((*schema_of(left).attributes, *schema_of(right).attributes))
        case Aggregate(below, keys, aggregations):
            given = schema_of(below)
            edges = (("window_start", Type.TIMESTAMP), ("window_end", Type.TIMESTAMP))
            return _schema(
                [
                    *(edges if isinstance(below, Windowed) else ()),
                    *(_column(key, given) for key in keys),
                    *((a.name, _aggregated(a, given)) for a in aggregations),
                ]
            )


def time_of(node: Node) -> str | None:
    """The attribute that says when a tuple happened; None: nobody knows."""
    match node:
        case Source(relation):
            return relation.event_time
        case Filter(below) | Unnest(below) | Windowed(below) | Moving(below) | Ranked(below):
            return time_of(below)
        case ToStream():
            return "instant"
        case Match():
            return "match_time"
        case Join(kind=JoinKind.FULL):
            return None
        case Join(_, right, kind=JoinKind.RIGHT):
            return time_of(right)
        case Join(left) | MovingJoin(left):
            return time_of(left)
        case Aggregate():
            return "window_end"
        case Project(below, columns):
            time = time_of(below)
            kept = [c.name for c in columns if c.expression == AttributeRef(time or "")]
            return kept[0] if kept else None
        case Union(several):
            names = {time_of(below) for below in several}
            return names.pop() if len(names) == 1 else None


def _schema(columns: list[tuple[str, AttributeType]]) -> Schema:
    return Schema(tuple(Attribute(name, kind) for name, kind in columns))


def _column(column: Column, given: Schema) -> tuple[str, AttributeType]:
    return column.name, type_of(column.expression, given)


def _aggregated(aggregation: Aggregation, given: Schema) -> AttributeType:
    if aggregation.function.startswith("count") or aggregation.argument is None:
        return Type.BIGINT
    if aggregation.function in ("avg", "stddev"):
        return Type.DOUBLE
    value = type_of(aggregation.argument, given)
    return ArrayType(value) if aggregation.function.startswith(("collect", "topk")) else value
