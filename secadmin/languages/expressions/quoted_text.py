"""Texts in double quotes, as CQL writes them: outcome = "success"."""

from __future__ import annotations

from sqlglot import exp

from catalog.schema import Type
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.typed import Typed, literal


def quoted_text(node: exp.Expr, scope: Scope, environment: Environment) -> Typed | None:
    """The text that a name in double quotes stands for, or None if it can be a name.

    In SQL double quotes are for names. So the text must be no attribute. Outside CQL it must be
    like none either: a name that is spelled wrong is an error, and no constant.
    """
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return None
    if not isinstance(node.this, exp.Identifier) or not node.this.args.get("quoted"):
        return None
    name = str(node.this.this)
    known = [field.name.lower() for table in scope.tables for field in table.fields]
    if not known or name.lower() in known:
        return None
    # CQL has no other quotes, so a query with its windows means what it writes.
    if not environment.moving.windows and any(_is_like(name.lower(), each) for each in known):
        return None
    return literal(name, Type.STRING, environment.at(node))


def _is_like(one: str, other: str) -> bool:
    """Whether two names differ by one letter at most, or by two neighbours that changed places."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    longest = max(len(one), len(other))
    return longest < 2 or (longest == 2 and one == other[::-1])
