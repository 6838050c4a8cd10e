"""A SELECT over a moving window (CQL): its groups, its results, and the stream of its changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression
from catalog.moving_check import is_of_windows
from catalog.plan import Aggregate, Aggregation, Change, Column, Filter, Project, ToStream, Window
from catalog.upserts import usually_upserts
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import Aggregates, NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.windows import is_window
from secadmin.languages.sql.grouping import Names, key_expressions
from secadmin.languages.sql.over_windows import stream_of_windows
from secadmin.languages.sql.stars import is_star
from secadmin.languages.typed import Typed

ReadItem = Callable[[exp.Expr, Reader], tuple[str, Typed]]
# Gives the plan of a source with these results.
Projected = Callable[[Built, tuple[Column, ...]], Built]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a SELECT gives. Over moving windows this is a relation.

    `having` is then a condition on the stream of its changes, or None. `made` has what is computed
    of rows in an order; each of them is computed when it comes, as in a query around this one.
    """

    relation: Built
    having: Expression | None = None
    made: tuple[Column, ...] | None = None

    def whole(self) -> Built:
        """The relation of the rows that fulfil the condition, with what is computed of them."""
        if self.made is not None:
            place = self.made[0].expression.position
            return build(Project(self.relation.node, self.made), (self.relation,), place)
        if self.having is None:
            return self.relation
        condition = Filter(self.relation.node, self.having)
        return build(condition, (self.relation,), self.having.position)


def read_moving(
    node: exp.Select,
    source: Built,
    scope: Scope,
    environment: Environment,
    read_item: ReadItem,
    project: Projected,
) -> Selection | None:
    """The relation of a SELECT with aggregates over moving windows, or None if it has none."""
    group, having = node.args.get("group"), node.args.get("having")
    keys: tuple[Expression, ...] = ()
    if group is not None:
        environment.only(group, "expressions")
        _refuse_windows(group, environment)
        reader = Reader(environment, scope, NoCalls("GROUP BY"))
        keys = key_expressions(group.expressions, reader)
    # A relation has no window whose edges could be asked for; the names are refused as unknown.
    calls = Aggregates(Window(1, 1), source.event_time or "", scope, changing=True)
    reader = Reader(environment, scope, calls)
    if any(map(is_star, node.expressions)):
        if group is not None:
            raise InvalidInput("with GROUP BY, name each result", environment.at(node))
        return None
    items = [read_item(item, reader) for item in node.expressions]
    if group is None and not calls.found:
        return None
    condition = None
    if having is not None:
        environment.only(having, "this")
        condition = reader.read(having.this)
    names = Names(keys, calls.found, items)
    place = environment.at(group if group is not None else node)
    aggregate = Aggregate(
        source.node,
        tuple(Column(name, key) for name, key in zip(names.keys, keys, strict=True)),
        _named(names.aggregations, calls.found),
    )
    built = build(aggregate, (source,), place)
    columns = tuple(Column(name, names.rewrite(item.expression)) for name, item in items)
    relation = project(built, columns)
    if condition is None:
        return Selection(relation)
    return Selection(relation, _over_results(names.rewrite(condition.expression), columns))


def _refuse_windows(group: exp.Expr, environment: Environment) -> None:
    for item in group.expressions:
        if is_window(item):
            raise InvalidInput(
                "groups over a moving window, or over upserts, have no other window: leave this "
                "one out, or the window in brackets",
                environment.at(item),
            )


def to_stream(relation: Built, environment: Environment, node: exp.Expr) -> Built:
    """The stream of a relation's changes: those that the text names, or else its usual ones.

    These are upserts of what has a key, if SELECT names it and no tuple leaves the windows, or
    upserts are read. Of the results of windows they are all rows. Of all else it is CQL's default.
    """
    if environment.moving.change is None and is_of_windows(relation.checked):
        return stream_of_windows(relation, environment.at(node))
    change = environment.moving.change or Change.ISTREAM
    if gives_upserts(relation, environment):
        change = Change.UPSERT
    place = environment.moving.position or environment.at(node)
    return build(ToStream(relation.node, change), (relation,), place)


def gives_upserts(relation: Built, environment: Environment) -> bool:
    """Whether the changes of a relation are upserts."""
    if environment.moving.change is not None:
        return environment.moving.change is Change.UPSERT
    return usually_upserts(relation.node)


def _named(names: Sequence[str], found: Sequence[Aggregation]) -> tuple[Aggregation, ...]:
    return tuple(
        Aggregation(name, each.function, each.argument)
        for name, each in zip(names, found, strict=True)
    )


def _over_results(condition: Expression, columns: Sequence[Column]) -> Expression:
    """HAVING over the results of SELECT. So what it decides is a part of what is sent."""
    match condition:
        case AttributeRef(name, position):
            for column in columns:
                if isinstance(column.expression, AttributeRef) and column.expression.name == name:
                    return AttributeRef(column.name, position)
            raise InvalidInput(
                "HAVING over a moving window names keys and aggregates that SELECT gives too; add "
                "this one to SELECT",
                position,
            )
        case Call(function, arguments, position):
            return Call(function, tuple(_over_results(a, columns) for a in arguments), position)
        case _:
            return condition
