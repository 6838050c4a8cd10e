"""All of FROM: one item with its window, a join of several, and what WHERE says of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.errors import InvalidInput
from secadmin.languages.building import Built
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.expressions.windows import clause_window
from secadmin.languages.sql.from_clause import Item, ReadQuery, read_item
from secadmin.languages.sql.grouping import Outside
from secadmin.languages.sql.inner_queries import as_relations
from secadmin.languages.sql.joins import Joining, join_streams, joining
from secadmin.languages.sql.moving_joins import moving_from, refuse_other_windows
from secadmin.languages.sql.unnesting import take_unnesting, unnested


@dataclass(frozen=True, slots=True)
class Input:
    """What FROM gives, its scope, and the window that is written there.

    `where` has the conditions of WHERE that are still to be applied.
    """

    built: Built
    scope: Scope
    outside: Outside | None
    where: Sequence[exp.Expr] = ()


def read_from(node: exp.Select, environment: Environment, read_query: ReadQuery) -> Input:
    """What the FROM of a SELECT gives. Raises InvalidInput."""
    clause = node.args.get("from_")
    if clause is None:
        raise InvalidInput("a query reads from a stream or output: add FROM", environment.at(node))
    environment.only(clause, "this")
    unnesting = take_unnesting(node, environment)
    read = _read_items(node, clause, environment, read_query)
    if unnesting is None:
        return read
    built, scope = unnested(read.built, read.scope, unnesting, environment)
    return replace(read, built=built, scope=scope)


def _read_items(
    node: exp.Select, clause: exp.Expr, environment: Environment, read_query: ReadQuery
) -> Input:
    """What FROM gives without UNNEST."""
    left = read_item(clause.this, environment, read_query)
    where = node.args.get("where")
    asked = None if where is None else where.this
    joins = [joining(each, environment, read_query) for each in node.args.get("joins") or ()]
    made = as_relations(node, [left, *(each.item for each in joins)], environment)
    if made is not None:
        left, *others = made
        joins = [replace(each, item=item) for each, item in zip(joins, others, strict=True)]
    if not joins and left.built.checked.is_changing and left.window is None:
        outside = _outside(node, left, environment)
        return Input(*moving_from(left, (), asked, environment, read_query), outside)
    if not joins:
        rest = [] if asked is None else [asked]
        return Input(left.built, left.scope, _outside(node, left, environment), rest)
    if any(item.built.checked.is_changing for item in (left, *(each.item for each in joins))):
        refuse_other_windows(node, joins, environment)
        return Input(*moving_from(left, joins, asked, environment, read_query), None)
    return _of_streams(node, left, joins, asked, environment)


def _of_streams(
    node: exp.Select,
    first: Item,
    joins: Sequence[Joining],
    where: exp.Expr | None,
    environment: Environment,
) -> Input:
    """A join of streams, outputs and results of windows."""
    for item in (first, *(each.item for each in joins)):
        if item.window is not None:
            raise InvalidInput(
                "a join goes over streams, or over the results of windows: make groups of the "
                "windows in a query inside FROM, such as JOIN (SELECT window_start, window_end, "
                "symbol, count(*) AS n FROM TUMBLE(...) GROUP BY window_start, window_end, "
                "symbol) AS w",
                environment.at(item.node),
            )
    parts = [] if where is None else conditions(where, environment.place)
    found = join_streams(first, joins, parts, environment)
    rest = found.where
    if where is not None and len(rest) == len(parts):
        # No join takes any of it, so it stays one condition.
        rest = [where]
    outside = _behind(node, found.built.event_time, environment)
    return Input(found.built, found.scope, outside, rest)


def _outside(node: exp.Select, item: Item, environment: Environment) -> Outside | None:
    """The window of a window function in FROM, or of WINDOW behind it."""
    if item.window is None:
        return _behind(node, item.built.event_time, environment, item.alias)
    clauses = node.args.get("windows") or []
    if clauses:
        raise InvalidInput("a query has one window", environment.at(clauses[0]))
    return Outside(item.window, item.alias, named=True, partition=item.partition)


def _behind(
    node: exp.Select, event_time: str | None, environment: Environment, alias: str = ""
) -> Outside | None:
    """The window of WINDOW behind FROM."""
    clauses = node.args.get("windows") or []
    if not clauses:
        return None
    if not isinstance(clauses[0], exp.Anonymous):
        raise InvalidInput("a query has one window", environment.at(clauses[0]))
    return Outside(clause_window(clauses[0], event_time, environment), alias)
