"""Queries inside a query: when the one around it goes over their rows, and not over their changes.

The changes of a relation are a stream, and a SELECT that takes single results of it goes over that
stream. One that makes groups, an order or a join goes over the relation itself, at each instant. So
does one that keeps the first row of each partition of all tuples so far: its results are upserts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from secadmin.languages.expressions.aggregates import AGGREGATES
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.expressions.windows import EDGES, is_window
from secadmin.languages.sql.from_clause import Item
from secadmin.languages.sql.ranks import is_ranked, keeps_one
from secadmin.languages.sql.relations import OF_CHANGES
from secadmin.languages.sql.semi_joins import is_semi

_CLAUSES = ("where", "group", "having", "order")


def as_relations(
    node: exp.Select, items: Sequence[Item], environment: Environment
) -> list[Item] | None:
    """The items of FROM as relations, if the SELECT goes over their rows. None if it does not."""
    if all(each.built.checked.is_changing for each in items):
        return None
    found = [each.relation() for each in items]
    if not any(found) or _names_changes(node) or node.args.get("windows"):
        return None
    # ISTREAM and the like around a query ask for the changes of what it gives.
    over = len(items) > 1 or environment.moving.change is not None
    if not over and not _goes_over_rows(node, environment):
        (relation,) = found
        if relation is None or not _keeps_one(node, relation, environment):
            return None
    return [relation or item for relation, item in zip(found, items, strict=True)]


def _names_changes(node: exp.Select) -> bool:
    """Whether the SELECT names what only changes have."""
    clauses = [node.args.get(clause) for clause in _CLAUSES]
    joins = [each.args.get("on") for each in node.args.get("joins") or ()]
    parts = [each for each in (*node.expressions, *clauses, *joins) if isinstance(each, exp.Expr)]
    columns = (column for part in parts for column in part.find_all(exp.Column))
    return any(column.name.lower() in OF_CHANGES for column in columns)


def _goes_over_rows(node: exp.Select, environment: Environment) -> bool:
    """Whether a SELECT over one item makes groups, an order or different rows."""
    group, where = node.args.get("group"), node.args.get("where")
    if group is not None:
        names = {each.name.lower() for each in group.expressions if isinstance(each, exp.Column)}
        return not (names & {*EDGES} or any(map(is_window, group.expressions)))
    asked = where is not None and any(map(is_semi, conditions(where.this, environment.place)))
    return asked or bool(node.args.get("distinct")) or is_ranked(node) or _aggregates(node)


def _keeps_one(node: exp.Select, relation: Item, environment: Environment) -> bool:
    """Whether a SELECT takes attributes of the first row of each partition of all tuples so far."""
    if environment.moving.windows:
        # Who writes windows also writes what of their changes is to be sent.
        return False
    where = node.args.get("where")
    values = (item.this if isinstance(item, exp.Alias) else item for item in node.expressions)
    if where is None or not all(isinstance(each, exp.Column | exp.Star) for each in values):
        return False
    return keeps_one(relation.built, conditions(where.this, environment.place))


def _aggregates(node: exp.Select) -> bool:
    calls = (call for item in node.expressions for call in item.find_all(exp.Anonymous))
    return any(str(call.this).lower() in AGGREGATES for call in calls)
