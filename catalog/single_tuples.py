"""Plans each of whose results depends on its own tuples alone."""

from __future__ import annotations

from catalog.plan import Filter, Join, JoinKind, Plan, Project, Source, Union, Unnest, walk


def of_single_tuples(plan: Plan) -> bool:
    """Whether no other tuple can bring, change or take away a result.

    The plan then gives a class with a view of its own the results that the class covers. So views
    of single roles need no runs of their own there (000 §5.2.1).
    """
    return all(
        node.kind in (JoinKind.INNER, JoinKind.SEMI)
        if isinstance(node, Join)
        else isinstance(node, Source | Filter | Project | Union | Unnest)
        for node in walk(plan.root)
    )
