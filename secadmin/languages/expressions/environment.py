"""The environment that each part of a query is read with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.relation import Relation
from catalog.schema import check_attribute_name
from secadmin.languages.building import Built
from secadmin.languages.expressions.match_clause import MatchClause
from secadmin.languages.expressions.moving_words import MovingWords
from secadmin.languages.expressions.places import Place, offset
from secadmin.languages.expressions.syntax import only, refused
from secadmin.languages.resolver import Resolver, look_up


@dataclass(frozen=True, slots=True)
class Environment:
    """Positions in the text, the resolver for names, and the common table expressions so far.

    `names_level` says that the text names the level of tuples somewhere.

    A single expression, as in a Borealis box, names no relation and has no resolver.
    """

    place: Place
    resolver: Resolver | None = None
    named: Mapping[str, Built] = field(default_factory=dict)
    moving: MovingWords = field(default_factory=MovingWords)
    names_level: bool = False
    # Each MATCH_RECOGNIZE by the position of the relation's name.
    matches: Mapping[Position, MatchClause] = field(default_factory=dict)

    def at(self, node: exp.Expr) -> Position:
        """The position of a node."""
        return self.place(offset(node))

    def only(self, node: exp.Expr, *allowed: str) -> None:
        """Raise InvalidInput if the node has an argument that is not one of these."""
        only(node, *allowed, place=self.place)

    def refused(self, node: exp.Expr) -> InvalidInput:
        """The error for a node that the language does not allow at its place."""
        return refused(node, self.place)

    def identifier(self, node: object) -> str:
        """The name in an identifier. Raises InvalidInput for anything else."""
        return str(self._identifier(node).this)

    def column(self, node: exp.Expr) -> tuple[str, str | None]:
        """The name of a column, and its qualifier or None. Raises InvalidInput."""
        self.only(node, "this", "table")
        table = node.args.get("table")
        return self.identifier(node.this), self.identifier(table) if table else None

    def path(self, node: exp.Expr) -> list[str]:
        """The names of a column that dots connect. Raises InvalidInput for anything else."""
        self.only(node, "this", "table", "db", "catalog")
        parts = (node.args.get(each) for each in ("catalog", "db", "table", "this"))
        return [self.identifier(part) for part in parts if part is not None]

    def new_name(self, node: object) -> str:
        """The new name in an identifier, as after AS. Raises InvalidInput if it is not usable."""
        identifier = self._identifier(node)
        return check_attribute_name(str(identifier.this), self.at(identifier))

    def _identifier(self, node: object) -> exp.Identifier:
        if not isinstance(node, exp.Identifier):
            raise self.refused(node) if isinstance(node, exp.Expr) else InvalidInput("no name")
        self.only(node, "this", "quoted")
        return node

    def relation(self, name: str, position: Position) -> Relation:
        """The relation that is named at this position. Raises UnknownRelation or InvalidInput."""
        if self.resolver is None:
            raise InvalidInput("an expression names no streams", position)
        return look_up(self.resolver, name, position)

    def within(self) -> Environment:
        """The environment of a query inside this one, of which ISTREAM around this says nothing."""
        return replace(self, moving=replace(self.moving, change=None, position=None))

    def naming(self, name: str, built: Built) -> Environment:
        """The same environment with one more common table expression."""
        return replace(self, named={**self.named, name: built})
