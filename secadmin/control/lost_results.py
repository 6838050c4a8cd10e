"""Warnings when policies take results from a query that is added: NR and PR (002 §3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from catalog.errors import InvalidInput
from catalog.expression import Call, Expression
from catalog.plan import Filter, Node, Plan, Source, inputs
from catalog.view_plan import ViewedStream
from secadmin.languages import Unsayable, expression_text
from secadmin.solving.conflicts import Loss, conflict


def warnings_about(
    plans: Iterable[Plan], viewed: Mapping[int, ViewedStream], *, accept_empty: bool = False
) -> tuple[str, ...]:
    """What the queries lose by the policies, in words. `viewed` are their streams, by id.

    Raises InvalidInput if a query gets nothing of a stream, unless `accept_empty`.
    """
    found: dict[str, None] = {}
    for plan in plans:
        for relation, asked in _asked(plan.root, None):
            if relation in viewed:
                each = viewed[relation]
                found |= dict.fromkeys(_about_rows(each, asked, accept_empty=accept_empty))
                found |= dict.fromkeys(_about_attributes(each))
    return tuple(found)


def _asked(node: Node, condition: Expression | None) -> Iterator[tuple[int, Expression | None]]:
    """Each source with the conditions directly above it: (the stream's id, condition)."""
    match node:
        case Source(relation):
            yield relation.object_id, condition
        case Filter(below, own):
            both = own if condition is None else Call("and", (condition, own))
            yield from _asked(below, both)
        case _:
            for below in inputs(node):
                yield from _asked(below, None)


def _about_rows(
    each: ViewedStream, asked: Expression | None, *, accept_empty: bool
) -> Iterator[str]:
    name, view = each.stream.name, each.view
    source = Source(each.stream, shows_level=bool(each.stream.conflict_classes))
    found = conflict(asked, view.rows, source.schema)
    match found.loss:
        case Loss.ALL:
            clash = " and ".join(map(_said, found.clash))
            words = f"the query gets nothing of {name}: {clash} exclude each other"
            if not accept_empty:
                raise InvalidInput(
                    f"{words}, by the policies of your roles; change the condition, or add the "
                    "query with --accept-empty"
                )
            yield words
        case Loss.PART:
            wanted = f"tuples of {name}" + (f" with {_said(asked)}" if asked is not None else "")
            yield f"the query asks for {wanted}; policies show only those with {_said(view.rows)}"
        case Loss.OWN:
            yield f"no tuple of {name} fulfils the query's own condition"


def _about_attributes(each: ViewedStream) -> Iterator[str]:
    """Attributes that are NULL where their own condition is not true."""
    for right in each.view.attributes or ():
        if right.when is not None:
            yield f"{right.name} of {each.stream.name} is NULL unless {_said(right.when)}"


def _said(condition: Expression | None) -> str:
    try:
        return "" if condition is None else f"({expression_text(condition)})"
    except Unsayable:
        return "(a condition)"
