"""Expressions over the pairs of a join of moving windows.

Such a join computes its pairs in Python, and the engine computes all other expressions. So each
largest part that reads one side alone is computed by the engine, below the join. What combines both
sides is computed with PAIR_FUNCTIONS only.
"""

from __future__ import annotations

from catalog.changing_parts import ChangingParts, inlined
from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, attributes_of, type_of
from catalog.plan import MovingJoin
from catalog.schema import Attribute, Schema

PAIR_FUNCTIONS = frozenset(
    {
        *("+", "-", "*", "/", "negate", "abs", "micros_between", "concat"),
        *("=", "<>", "<", "<=", ">", ">=", "and", "or", "not"),
        *("is_null", "coalesce", "case", "greatest", "least"),
    }
)
# Each pair of tuples costs so many steps at most.
MAX_PAIR_PARTS = 200


class SideValues:
    """Collects the parts of expressions that read one side alone.

    In the expressions over pairs, `left.<n>` is the n-th value of the left side.
    """

    def __init__(self, left: Schema, right: Schema) -> None:
        self._schemas = {"left": left, "right": right}
        self._found: dict[str, dict[Expression, AttributeRef]] = {"left": {}, "right": {}}
        self._parts = 0

    def values(self, side: str) -> tuple[Expression, ...]:
        """The expressions over the attributes of a side, in the order of their numbers."""
        return tuple(self._found[side])

    def schema(self) -> Schema:
        """The types of all values of both sides."""
        return Schema(
            tuple(
                Attribute(ref.name, type_of(part, self._schemas[side]))
                for side, found in self._found.items()
                for part, ref in found.items()
            )
        )

    def over_pair(self, expression: Expression) -> Expression:
        """The expression over the values of both sides. Raises InvalidInput, with its position."""
        self._parts += 1
        if self._parts > MAX_PAIR_PARTS:
            raise InvalidInput(
                f"a join of moving windows has at most {MAX_PAIR_PARTS} parts of expressions that "
                "combine both sides; compute more in a query over this one's output",
                expression.position,
            )
        side = self._side(expression)
        if side is not None:
            known = self._found[side]
            return known.setdefault(expression, AttributeRef(f"{side}.{len(known)}"))
        match expression:
            case Call(function, arguments, position):
                if function not in PAIR_FUNCTIONS:
                    raise InvalidInput(
                        f"over a join of moving windows {function.upper()} takes attributes of one "
                        "side only; apply it in a query over this one's output",
                        position,
                    )
                return Call(function, tuple(map(self.over_pair, arguments)), position)
            case _:
                return expression

    def _side(self, expression: Expression) -> str | None:
        """The only side that the expression reads. A constant is a part of any side."""
        if isinstance(expression, Literal):
            return None
        names = {ref.name for ref in attributes_of(expression)}
        for side, schema in self._schemas.items():
            if names <= {*schema.names}:
                return side
        return None


class PairExpressions:
    """What a join of moving windows computes for each pair, and the values that it reads.

    `conditions` must all be true. `shown` are the values of a row, or of a group's key; `arguments`
    are those of the aggregates. Raises InvalidInput.
    """

    def __init__(self, parts: ChangingParts) -> None:
        node = parts.base.node
        if not isinstance(node, MovingJoin):
            raise TypeError("not a join of moving windows")
        left, right = (side.schema for side in parts.base.inputs)
        self.sides = SideValues(left, right)
        filters, values = parts.over_base()
        own = () if node.condition is None else (node.condition,)
        self.conditions = tuple(map(self.sides.over_pair, (*own, *filters)))
        aggregate = parts.aggregate
        if aggregate is None:
            shown, arguments = list(values.values()), []
        else:
            shown = [inlined(key.expression, values) for key in aggregate.keys]
            arguments = [
                inlined(each.argument, values)
                for each in aggregate.aggregations
                if each.argument is not None
            ]
        self.shown = tuple(map(self.sides.over_pair, shown))
        self.arguments = tuple(map(self.sides.over_pair, arguments))


def check_pairs(relation: CheckedNode) -> None:
    """Raise InvalidInput for an expression that no join of moving windows can compute."""
    if any(isinstance(each.node, MovingJoin) for each in relation.walk()):
        parts = ChangingParts.of(relation)
        if isinstance(parts.base.node, MovingJoin):
            PairExpressions(parts)
