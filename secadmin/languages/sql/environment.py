"""What a part of a query is read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.schema import check_attribute_name
from secadmin.languages.building import Built
from secadmin.languages.resolver import Resolver
from secadmin.languages.sql.places import Place, offset
from secadmin.languages.sql.syntax import only, refused


@dataclass(frozen=True, slots=True)
class Environment:
    """The resolver, the text's places, and the common table expressions in force."""

    resolver: Resolver
    place: Place
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
        if not isinstance(node, exp.Identifier):
            raise self.refused(node) if isinstance(node, exp.Expr) else InvalidInput("no name")
        self.only(node, "this", "quoted")
        return str(node.this)

    def new_name(self, node: object) -> str:
        """A name that the query gives to something. Raises InvalidInput if it is not usable."""
        name = self.identifier(node)
        assert isinstance(node, exp.Identifier)  # identifier() has refused the rest
        return check_attribute_name(name, self.at(node))

    def naming(self, name: str, built: Built) -> Environment:
        """The same with one more common table expression."""
        return replace(self, named={**self.named, name: built})
