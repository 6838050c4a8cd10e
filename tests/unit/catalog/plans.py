"""Relations, expressions and plans to test with."""

from catalog.errors import Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Node,
    Project,
    Source,
    Union,
    Window,
)
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from tests.plans import grouped, updating

B, N, D, S, T = Type.BOOLEAN, Type.BIGINT, Type.DOUBLE, Type.STRING, Type.TIMESTAMP
PLACE = Position(3, 7)


def schema(**types: Type) -> Schema:
    return Schema(tuple(Attribute(name, kind, name == "at") for name, kind in types.items()))


def relation(  # noqa: PLR0917 - a row of a table
    name: str = "in1",
    types: Schema | None = None,
    at: str | None = "at",
    bit: int = 0,
    lateness: int = 0,
    public: bool = False,
    declared: DeclaredAggregate | None = None,
) -> Relation:
    own = types or schema(at=T, symbol=S, price=D, size=N, big=B)
    kind = RelationKind.STREAM
    return Relation(1 + bit, name, kind, own, at, lateness, public, declared)


def reach_of(found: Relation) -> Label:
    """What the tuples of a relation can carry: the category that its number stands for."""
    return Label.of(found.object_id - 1)


def ref(name: str) -> AttributeRef:
    return AttributeRef(name, PLACE)


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, PLACE)


def column(name: str) -> Column:
    return Column(name, ref(name))


SOURCE = Source(relation())
OTHER = Source(relation("in2", schema(when=T, name=S, amount=N), "when", bit=1, lateness=5))
TIMELESS = Source(relation("in3", schema(symbol=S), None, bit=2))
ONE = Literal(1, N, PLACE)
COUNT = Aggregation("n", "count", None)
MINUTE = Window(60_000, 60_000)
WINDOWED = grouped(SOURCE, MINUTE, (column("symbol"),), (COUNT,))
UPDATING = updating(WINDOWED)
JOINED = Join(SOURCE, OTHER, ((ref("symbol"), ref("name")),), -1_000, 1_000)


def aggregated(function: str, argument: Expression | None) -> Aggregate:
    return grouped(SOURCE, MINUTE, (), (Aggregation("x", function, argument),))


def windowed(size: int, slide: int, offset: int = 0) -> Aggregate:
    return grouped(SOURCE, Window(size, slide, offset), (), (COUNT,))


def filtered(condition: Expression) -> Filter:
    return Filter(SOURCE, condition)


def computed(expression: Expression) -> Project:
    return Project(SOURCE, (Column("x", expression),))


def deep(nodes: int) -> Node:
    plan: Node = SOURCE
    for _ in range(nodes):
        plan = Filter(plan, ref("big"))
    return plan


def unfolding(doublings: int) -> Node:
    plan: Node = SOURCE
    for _ in range(doublings):
        plan = Union((plan, plan))
    return plan


def nested(calls: int) -> Expression:
    expression: Expression = ref("big")
    for _ in range(calls):
        expression = call("not", expression)
    return expression


def wide(attributes: int) -> Node:
    return Project(SOURCE, tuple(Column(f"c{i}", ref("size")) for i in range(attributes)))


def joined(**changed: object) -> Join:
    own = {"left": SOURCE, "right": OTHER, "equal": JOINED.equal, "lower_ms": 0, "upper_ms": 0}
    return Join(**{**own, **changed})  # type: ignore[arg-type]
