"""Streams and tuples that the hand-worked examples share."""

from __future__ import annotations

from datetime import datetime

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import Node, Source
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from tests.oracle import plans
from tests.oracle.values import Row, Tuple, Value

IN1, IN2 = Label.of(0), Label.of(1)
AGGREGATED = 5


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    """A time on the day of the examples."""
    return datetime(2026, 1, 31, hour, minute, second)  # noqa: DTZ001


def stream(
    name: str,
    reach: Label,
    *,
    prefix: str = "",
    lateness_ms: int = 0,
    public: bool = False,
    declared: DeclaredAggregate | None = None,
) -> Source:
    """A source of (ts, x, v) tuples."""
    types = {"ts": Type.TIMESTAMP, "x": Type.STRING, "v": Type.BIGINT}
    schema = Schema(tuple(Attribute(prefix + key, kind) for key, kind in types.items()))
    relation = Relation(
        object_id=reach.bits + 1,
        name=name,
        kind=RelationKind.STREAM,
        schema=schema,
        event_time=f"{prefix}ts",
        lateness_ms=lateness_ms,
        public=public,
        declared=declared,
    )
    return Source(relation)


def reach_of(relation: Relation) -> Label:
    """The reach with which `stream` made the relation."""
    return Label(relation.object_id - 1)


def run(node: Node, tables: plans.Tables, watermark: datetime | None = None) -> list[Tuple]:
    """What the oracle gives."""
    return plans.run(node, tables, reach_of, watermark)


def relation_of(source: Node) -> Relation:
    """The relation of a Source."""
    assert isinstance(source, Source)
    return source.relation


def row(**values: Value) -> Row:
    """A row whose attributes have the types of the values; None is a BIGINT."""
    kinds = {bool: Type.BOOLEAN, int: Type.BIGINT, float: Type.DOUBLE, str: Type.STRING}
    kinds |= {datetime: Type.TIMESTAMP, type(None): Type.BIGINT}
    schema = Schema(tuple(Attribute(name, kinds[type(v)]) for name, v in values.items()))
    return Row(schema, tuple(values.values()))


def ref(name: str) -> AttributeRef:
    """An attribute."""
    return AttributeRef(name)


def call(function: str, *arguments: Expression) -> Call:
    """A call."""
    return Call(function, arguments)


def bigint(value: int | None) -> Literal:
    """A constant number."""
    return Literal(value, Type.BIGINT)


def tuples(*given: tuple[tuple[Value, ...], Label | None]) -> list[Tuple]:
    """Tuples from (values, label)."""
    return [Tuple(values, label) for values, label in given]
