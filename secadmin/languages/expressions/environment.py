"""What a part of a query is read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.relation import Relation
from catalog.schema import check_attribute_name
from secadmin.languages.building import Built
from secadmin.languages.expressions.places import Place, offset
from secadmin.languages.expressions.syntax import only, refused
from secadmin.languages.resolver import Resolver, look_up


@dataclass(frozen=True, slots=True)
class Environment:
    """The text's places, the relations that it can name, common table expressions in force.

    An expression that stands alone names no relation and has no resolver.
    """

    place: Place
    resolver: Resolver | None = None
    named: Mapping[str, Built] = field(default_factory=dict)

    def at(self, node: exp.Expr) -> Position:
        """The place of a node."""
        return self.place(offset(node))

    def only(self, node: exp.Expr, *allowed: str) -> None:
        """Raise InvalidInput if the node has an argument that is not one of these."""
        only(node, *allowed, place=self.place)

    def refused(self, node: exp.Expr) -> InvalidInput:
        """The error for a node that the language does not have at its place."""
        return refused(node, self.place)

    def identifier(self, node: object) -> str:
        """The name that an identifier is. Raises InvalidInput for anything else."""
        return str(self._identifier(node).this)

    def column(self, node: exp.Expr) -> tuple[str, str | None]:
        """The name and the qualifier that a column is. Raises InvalidInput."""
        self.only(node, "this", "table")
        table = node.args.get("table")
        return self.identifier(node.this), self.identifier(table) if table else None

    def new_name(self, node: object) -> str:
        """A name that the query gives to something. Raises InvalidInput if it is not usable."""
        identifier = self._identifier(node)
        return check_attribute_name(str(identifier.this), self.at(identifier))

    def _identifier(self, node: object) -> exp.Identifier:
        if not isinstance(node, exp.Identifier):
            raise self.refused(node) if isinstance(node, exp.Expr) else InvalidInput("no name")
        self.only(node, "this", "quoted")
        return node

    def relation(self, name: str, position: Position) -> Relation:
        """The relation that stands at this place. Raises UnknownRelation and what it may."""
        if self.resolver is None:
            raise InvalidInput("an expression names no streams", position)
        return look_up(self.resolver, name, position)

    def naming(self, name: str, built: Built) -> Environment:
        """The same with one more common table expression."""
        return replace(self, named={**self.named, name: built})
