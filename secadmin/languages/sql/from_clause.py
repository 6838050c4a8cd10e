"""FROM: a stream, an output, a derived table, a common table expression, or a join of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.conflict_class import LEVEL
from catalog.errors import InvalidInput
from catalog.plan import DELETED, INSTANT, Moving, SessionWindow, Source, Window
from catalog.upserts import newest_of_each
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.expressions.windows import AROUND_RELATIONS, window_over
from secadmin.languages.sql.matching import read_events, read_match
from secadmin.languages.sql.relations import relation_of

# Reads a whole query. It is a parameter because queries and FROM clauses nest in each other.
ReadQuery = Callable[[exp.Expr, Environment], Built]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of FROM with its alias. `node` is its syntax node, which has the position.

    `window` is the window of a window function around the relation, or None. `partition` has what
    SESSION names with PARTITION BY.
    """

    alias: str
    built: Built
    node: exp.Expr
    window: Window | SessionWindow | None = None
    partition: tuple[exp.Expr, ...] = ()

    @property
    def scope(self) -> Scope:
        """The attributes that a SELECT over this item alone can name."""
        return Scope((self.table(),))

    def table(self, prefix: str = "") -> Table:
        """The attributes of the item. In the plan their names have this prefix."""
        node = self.built.node.input if isinstance(self.built.node, Moving) else self.built.node
        # The level is there for whoever names it, and so is what upserts have besides their row.
        hidden: set[str] = set()
        if isinstance(node, Source):
            hidden |= {LEVEL} if node.shows_level else set()
            hidden |= {INSTANT, DELETED} if node.relation.keys else set()
        return Table.of(self.alias, self.built.schema, prefix, frozenset(hidden))

    def relation(self) -> Item | None:
        """The item as a changing relation, or None if it is none."""
        if self.window is not None:
            return None
        if self.built.checked.is_changing:
            return self
        found = relation_of(self.built)
        return None if found is None else replace(self, built=found)


def read_item(node: exp.Expr, environment: Environment, read_query: ReadQuery) -> Item:
    """Read one item of FROM: a relation or a derived table. Raises InvalidInput."""
    if isinstance(node, exp.Table):
        if isinstance(node.this, exp.Anonymous):
            return _windowed(node, environment, read_query)
        return _relation(node, environment)
    if isinstance(node, exp.Subquery):
        environment.only(node, "this", "alias")
        return Item(
            _alias(node, environment) or "", read_query(node.this, environment.within()), node
        )
    raise environment.refused(node)


def _relation(node: exp.Table, environment: Environment) -> Item:
    environment.only(node, "this", "alias")
    name = environment.identifier(node.this)
    place = environment.at(node.this)
    alias = _alias(node, environment) or name
    clause = environment.matches.get(place)
    if clause is not None and clause.events is not None:
        return Item(alias, read_events(clause, clause.events, environment), node)
    if name in environment.named:
        built = environment.named[name]
    else:
        relation = environment.relation(name, place)
        has_level = bool(relation.conflict_classes) and relation.schema.get(LEVEL) is None
        source = Source(relation, shows_level=has_level and environment.names_level)
        built = build(source, (), place)
    if clause is not None:
        built = read_match(clause, built, environment)
    window = environment.moving.windows.get(place)
    if window is None and isinstance(built.node, Source) and built.node.relation.keys:
        window = newest_of_each(built.node.relation.keys)
    if window is not None:
        built = build(Moving(built.node, window), (built,), place)
    return Item(alias, built, node)


def _windowed(node: exp.Table, environment: Environment, read_query: ReadQuery) -> Item:
    """A window function around a relation or a derived table: TUMBLE(trades, ts, size)."""
    environment.only(node, "this", "alias")
    call = node.this
    if str(call.this).lower() not in AROUND_RELATIONS:
        raise InvalidInput(
            "FROM reads streams and outputs, and the window functions TUMBLE(trades, ts, size), "
            "HOP(trades, ts, slide, size) and SESSION(trades PARTITION BY symbol, ts, gap)",
            environment.at(call),
        )
    argument = call.expressions[0] if call.expressions else call
    if isinstance(argument, exp.Column):
        name, qualifier = environment.column(argument)
        if qualifier is not None:
            raise InvalidInput("a relation's name has no dots", environment.at(argument))
        table = exp.Table(this=argument.this)
        inner = _relation(table, environment)
        own = name
    elif isinstance(argument, exp.Subquery):
        inner, own = read_item(argument, environment, read_query), ""
    else:
        raise InvalidInput(
            "the first argument is a relation: write TUMBLE(trades, ts, INTERVAL '1' HOUR)",
            environment.at(argument),
        )
    if inner.built.checked.is_changing:
        raise InvalidInput(
            f"{str(call.this).upper()} goes over single tuples, and {own or 'this'} is a changing "
            "relation: leave it out, or count the changes in a query over ISTREAM's results",
            environment.at(call),
        )
    found, partition = window_over(call, inner.built.event_time, environment, inner.scope)
    return Item(_alias(node, environment) or own, inner.built, node, found, partition)


def _alias(node: exp.Expr, environment: Environment) -> str | None:
    alias = node.args.get("alias")
    if alias is None:
        return None
    if not isinstance(alias, exp.TableAlias):
        raise InvalidInput("an alias is a name", environment.at(node))
    environment.only(alias, "this")
    return environment.new_name(alias.this)
