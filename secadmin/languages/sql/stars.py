"""The * in SELECT: all attributes of FROM, or those of one relation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.plan import Column
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope, Table


def is_star(node: exp.Expr) -> bool:
    """Whether an item of SELECT is * or t.*."""
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def star_columns(node: exp.Expr, scope: Scope, environment: Environment) -> list[Column]:
    """The results that * gives. Raises InvalidInput if two of them have one name."""
    place = environment.at(node)
    tables = scope.tables
    if isinstance(node, exp.Column):
        environment.only(node, "this", "table")
        tables = (scope.table(environment.identifier(node.args["table"]), place),)
        node = node.this
    environment.only(node)
    _refuse_clashes(tables, place)
    return [Column(f.name, f.value(place).expression) for table in tables for f in table.shown]


def _refuse_clashes(tables: Sequence[Table], place: Position) -> None:
    """Refuse * over a join whose sides have attributes of one name."""
    several = [field.name for table in tables for field in table.shown]
    clashes = [name for name in dict.fromkeys(several) if several.count(name) > 1]
    if clashes:
        first, second = (table.alias for table in tables[:2])
        raise InvalidInput(
            f"* would give {', '.join(clashes)} twice, from {first} and from {second}; name the "
            f"results: {first}.*, {second}.{clashes[0]} AS {second}_{clashes[0]}",
            place,
        )
