"""FROM: a stream, an output, a derived table, a common table expression, or a join of two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.plan import Source
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope, Table

# Reads a whole query. It is a parameter because queries and FROM clauses nest in each other.
ReadQuery = Callable[[exp.Expr, Environment], Built]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of FROM with its alias. `node` is its syntax node, which has the position."""

    alias: str
    built: Built
    node: exp.Expr

    @property
    def scope(self) -> Scope:
        """The attributes that a SELECT over this item alone can name."""
        return Scope((Table.of(self.alias, self.built.schema),))


def read_item(node: exp.Expr, environment: Environment, read_query: ReadQuery) -> Item:
    """Read one item of FROM: a relation or a derived table. Raises InvalidInput."""
    if isinstance(node, exp.Table):
        return _relation(node, environment)
    if isinstance(node, exp.Subquery):
        environment.only(node, "this", "alias")
        return Item(_alias(node, environment) or "", read_query(node.this, environment), node)
    raise environment.refused(node)


def _relation(node: exp.Table, environment: Environment) -> Item:
    environment.only(node, "this", "alias")
    name = environment.identifier(node.this)
    place = environment.at(node.this)
    alias = _alias(node, environment) or name
    if name in environment.named:
        return Item(alias, environment.named[name], node)
    relation = environment.relation(name, place)
    return Item(alias, build(Source(relation), (), place), node)


def _alias(node: exp.Expr, environment: Environment) -> str | None:
    alias = node.args.get("alias")
    if alias is None:
        return None
    if not isinstance(alias, exp.TableAlias):
        raise InvalidInput("an alias is a name", environment.at(node))
    environment.only(alias, "this")
    return environment.new_name(alias.this)
