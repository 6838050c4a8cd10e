"""How large a plan gets in the engine, which puts a column's expression in place of its name.

A column that is used eight times over nine levels stands there 8⁹ times, and a call may hold its
argument more than once (`ScalarFunction.copies`). So the size is counted as if every name were
replaced, down to the sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import SCALAR_FUNCTIONS
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
)

# Attributes, constants and calls of one expression; of all of a plan's.
MAX_EXPRESSION = 10_000
MAX_PLAN = 100_000
Sizes = Mapping[str, int]


def check_size(plan: Plan) -> None:
    """Raise InvalidInput, with the place of what is too large. The plan's types are right."""
    _Counter().sizes(plan)


class _Counter:
    """Counts all expressions of a plan."""

    def __init__(self) -> None:
        self._total = 0

    def sizes(self, plan: Plan) -> Sizes:
        """The size of each attribute of the node's tuples, all names in it replaced."""
        match plan:
            case Source(relation):
                return dict.fromkeys(relation.schema.names, 1)
            case Filter(node, condition):
                given = self.sizes(node)
                self._count(condition, given)
                return given
            case Project(node, columns):
                given = self.sizes(node)
                return {c.name: self._count(c.expression, given) for c in columns}
            case Union(nodes):
                branches = [self.sizes(node) for node in nodes]
                rows = zip(*(branch.values() for branch in branches), strict=True)
                return dict(zip(branches[0], map(max, rows), strict=True))
            case Join(left, right, condition=condition):
                both = {**self.sizes(left), **self.sizes(right)}
                if condition is not None:
                    self._count(condition, both)
                return both
            case Aggregate():
                return self._aggregate(plan)

    def _aggregate(self, node: Aggregate) -> Sizes:
        given = self.sizes(node.input)
        keys = {key.name: self._count(key.expression, given) for key in node.keys}
        for aggregation in node.aggregations:
            if aggregation.argument is not None:
                self._count(aggregation.argument, given)
        # What was kept as state has no expression any more.
        results = dict.fromkeys((a.name for a in node.aggregations), 1)
        return {WINDOW_START: 1, WINDOW_END: 1, **keys, **results}

    def _count(self, expression: Expression, given: Sizes) -> int:
        size = size_of(expression, given)
        self._total += size
        if size > MAX_EXPRESSION or self._total > MAX_PLAN:
            limit, what = (
                (MAX_EXPRESSION, "the expression")
                if size > MAX_EXPRESSION
                else (MAX_PLAN, "the query")
            )
            raise InvalidInput(
                f"{what} has more than {limit} parts once each computed column stands in full "
                "wherever it is used; use it fewer times, or compute it in a query of its own "
                "and read its output",
                expression.position,
            )
        return size


def size_of(expression: Expression, given: Sizes) -> int:
    """The size of an expression over attributes of these sizes."""
    match expression:
        case AttributeRef(name):
            return given[name]
        case Literal():
            return 1
        case Call(function):
            within = _within(expression, given)
            return within * (SCALAR_FUNCTIONS[function].copies if _in_chain(expression) else 1)


def _within(call: Call, given: Sizes) -> int:
    """The size of a call; of a chain only its end is looked at again."""
    rule = SCALAR_FUNCTIONS[call.function]
    inner = [
        _within(part, given)
        if rule.chained and isinstance(part, Call) and _in_chain(part)
        else size_of(part, given)
        for part in call.arguments
    ]
    return 1 + sum(inner) * (1 if rule.chained else rule.copies)


def _in_chain(expression: Expression) -> bool:
    return isinstance(expression, Call) and SCALAR_FUNCTIONS[expression.function].chained
