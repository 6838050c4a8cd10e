"""Reads the parts of a SELECT over rows in an order: OVER, ORDER BY with LIMIT, and its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from catalog.changing_parts import inlined
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression, attributes_of, type_of
from catalog.plan import Column, Neighbour, OrderKey, Ranked
from catalog.schema import Schema
from secadmin.languages.building import Built
from secadmin.languages.expressions.aggregates import Ungrouped
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.refusals import RANKED
from secadmin.languages.sql.stars import is_star, star_columns
from secadmin.languages.typed import Typed, attribute, known


def over_of(item: exp.Expr) -> exp.Window | None:
    """The OVER that an item of SELECT is, or None if it is something else."""
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner if isinstance(inner, exp.Window) else None


@dataclass(frozen=True, slots=True)
class _Computing(Ungrouped):
    """The results of a SELECT that computes with OVER."""

    ordering: Ordering | None = None

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """The value of an OVER. None for a scalar function. Raises InvalidInput for the others."""
        if isinstance(node, exp.Window) and self.ordering is not None:
            return self.ordering.neighbour(node)
        return Ungrouped.special(self, node, name, reader)


@dataclass
class Ordering:
    """Reads the parts of a SELECT over ordered rows. All its OVER have one order."""

    reader: Reader
    schema: Schema
    # Whether SELECT has OVER. Then its results may be computed of the rows in their order.
    computes: bool = False
    # The names that a value of OVER inside an expression cannot have.
    taken: set[str] = field(default_factory=set)
    partition: tuple[AttributeRef, ...] | None = None
    order: tuple[OrderKey, ...] = ()
    number: str | None = None
    most: int | None = None
    neighbours: list[Neighbour] = field(default_factory=list)

    @property
    def environment(self) -> Environment:
        """That of the SELECT."""
        return self.reader.environment

    def node(self, source: Built) -> Ranked:
        """The node over a source."""
        neighbours = tuple(self.neighbours)
        return Ranked(
            source.node, self.partition or (), self.order, self.most, self.number, neighbours
        )

    def item(self, item: exp.Expr) -> list[Column]:
        """The results of an item of SELECT."""
        environment = self.environment
        if is_star(item):
            return star_columns(item, self.reader.scope, environment)
        over = over_of(item)
        inner = item.this if isinstance(item, exp.Alias) else item
        name = environment.new_name(item.args["alias"]) if isinstance(item, exp.Alias) else None
        if over is None:
            value = self._value(inner)
            if name is None and isinstance(value, AttributeRef):
                name = value.name.rpartition(".")[2]
        if name is None:
            raise InvalidInput(
                "give this result a name with AS, such as AS rn", environment.at(item)
            )
        if over is None:
            return [Column(name, value)]
        self._window(over)
        self._function(over.this, name)
        return [Column(name, AttributeRef(name, environment.at(item)))]

    def _value(self, node: exp.Expr) -> Expression:
        """A result of SELECT that is not OVER itself."""
        if not self.computes:
            return self._attribute(node)
        value = Reader(self.environment, self.reader.scope, _Computing(ordering=self)).read(node)
        known(value)
        return value.expression

    def neighbour(self, over: exp.Window) -> Typed:
        """The value of an OVER inside an expression. Raises InvalidInput."""
        place = self.environment.at(over.this)
        if str(over.this.this).upper() == "ROW_NUMBER":
            raise InvalidInput(
                "a row number is a whole item of the SELECT list: give it a name with AS there, "
                "and use the name in a query around this one",
                place,
            )
        self._window(over)
        names = (f"over_{number}" for number in count(1))
        self._function(over.this, next(name for name in names if name not in self.taken))
        *others, made = self.neighbours
        same = next((each for each in others if replace(each, name=made.name) == made), None)
        if same is not None:
            self.neighbours.pop()
            made = same
        self.taken.add(made.name)
        return attribute(made.name, type_of(made.attribute, self.schema), place)

    def _attribute(self, node: exp.Expr) -> AttributeRef:
        value = self.reader.read(node).expression
        if not isinstance(value, AttributeRef):
            raise InvalidInput(
                "beside an order, SELECT, PARTITION BY and ORDER BY name attributes; compute in a "
                "WITH before this query, or in a query around it",
                self.environment.at(node),
            )
        return value

    def _window(self, over: exp.Window) -> None:
        environment = self.environment
        environment.only(over, "this", "partition_by", "order", "over")
        partition = tuple(map(self._attribute, over.args.get("partition_by") or ()))
        order = self._order(over.args.get("order"), over)
        if self.partition is not None and (self.partition, self.order) != (partition, order):
            raise InvalidInput(
                "all OVER of a query have one PARTITION BY and one ORDER BY; add the other as a "
                "query of its own",
                environment.at(over),
            )
        self.partition, self.order = partition, order

    def _order(self, clause: exp.Expr | None, node: exp.Expr) -> tuple[OrderKey, ...]:
        environment = self.environment
        if clause is None:
            raise InvalidInput("OVER needs ORDER BY here", environment.at(node))
        environment.only(clause, "expressions")
        keys = []
        for each in clause.expressions:
            environment.only(each, "this", "desc", "nulls_first")
            descending = bool(each.args.get("desc"))
            if each.args.get("nulls_first") is descending:
                raise InvalidInput(
                    "NULL is before all other values, or last with DESC; leave NULLS out",
                    environment.at(each),
                )
            keys.append(OrderKey(self._attribute(each.this), descending))
        return tuple(keys)

    def _function(self, call: exp.Expr, name: str) -> None:
        environment = self.environment
        function = str(call.this).upper() if isinstance(call, exp.Anonymous) else ""
        arguments = call.expressions
        place = environment.at(call)
        if function == "ROW_NUMBER" and not arguments:
            if self.number is not None:
                raise InvalidInput("a query has one ROW_NUMBER", place)
            self.number = name
            return
        if function not in RANKED or not 1 <= len(arguments) <= 2 or function == "ROW_NUMBER":
            raise InvalidInput(
                "OVER goes with ROW_NUMBER(), LAG(attribute) and LEAD(attribute), or with the "
                "number of rows: LAG(price, 2)",
                place,
            )
        rows = whole(arguments[1]) if len(arguments) == 2 else 1
        if rows is None:
            raise InvalidInput(f"{function} goes a whole number of rows back or on", place)
        offset = rows if function == "LAG" else -rows
        self.neighbours.append(Neighbour(name, self._attribute(arguments[0]), offset))

    def limit(self, node: exp.Select) -> None:
        """Read ORDER BY ... LIMIT behind the query."""
        environment = self.environment
        order, limit = node.args.get("order"), node.args.get("limit")
        if not isinstance(order, exp.Expr):
            raise InvalidInput(
                "LIMIT keeps the first rows of an order: write ORDER BY price DESC LIMIT 10",
                environment.at(limit or node),
            )
        if self.order:
            raise InvalidInput(
                "OVER orders the rows, so ORDER BY and LIMIT have no other order; leave them out",
                environment.at(order),
            )
        if not isinstance(limit, exp.Expr):
            raise InvalidInput(_SORTED, environment.at(order))
        environment.only(limit, "expression")
        self.most = whole(limit.args["expression"])
        if self.most is None:
            raise InvalidInput("LIMIT takes a whole number", environment.at(limit))
        self.order = self._order(order, order)


_SORTED = (
    "ORDER BY goes with LIMIT, which says how many rows are kept; a stream has no end: to sort, "
    "sort what you receive"
)


def whole(node: exp.Expr) -> int | None:
    """The whole number that a node writes, or None."""
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None


def apart(columns: Iterable[Column]) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """The attributes of rows that these results read, and the results in terms of these."""
    read: dict[str, AttributeRef] = {}
    taken: set[str] = set()
    several = tuple(columns)
    for ref in (ref for column in several for ref in attributes_of(column.expression)):
        if ref.name not in read:
            # In a join the names have their relation before them.
            own = ref.name.rpartition(".")[2]
            names = (own if number == 1 else f"{own}_{number}" for number in count(1))
            name = next(name for name in names if name not in taken)
            taken.add(name)
            read[ref.name] = AttributeRef(name, ref.position)
    inner = (Column(shown.name, AttributeRef(name)) for name, shown in read.items())
    made = (Column(each.name, inlined(each.expression, read)) for each in several)
    return tuple(inner), tuple(made)
