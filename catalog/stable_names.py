"""Which attributes of a changing relation say of what a row depends (catalog/SPEC.md, Nested).

A row of a group changes with its tuples. So it may move from one group above it to another one, or
pass a condition no more. What is computed of the rows that are left depends on the one that went
away, though that one is not among them. It does not where the attributes that decide about this
never change in a row. Here these are called stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog.checked_plan import CheckedNode
from catalog.expression import Expression, attributes_of
from catalog.plan import Aggregate, Filter, JoinKind, MovingJoin, Project, Ranked, Union

Names = frozenset[str]


def stable_names(each: CheckedNode) -> Names | None:
    """The stable attributes of a relation's rows. None if something else decides which are there.

    A tuple of a window never changes, so all its attributes are stable.
    """
    below = [stable_names(given) for given in each.inputs if given.is_changing]
    match each.node:
        case Filter(_, condition):
            return below[0] if _reads(below[0], [condition]) else None
        case Project(_, columns):
            known = below[0]
            if known is None:
                return None
            return frozenset(c.name for c in columns if _reads(known, [c.expression]))
        case Union():
            every = _known(below)
            return None if every is None else frozenset.intersection(*every)
        case MovingJoin(equal=equal, condition=condition, kind=kind):
            sides = _known(below)
            both = None if sides is None else frozenset.union(*sides)
            further = [] if condition is None else [condition]
            if not _reads(both, [*(ref for pair in equal for ref in pair), *further]):
                return None
            return below[0] if kind in (JoinKind.SEMI, JoinKind.ANTI) else both
        case Aggregate(_, keys):
            return frozenset(key.name for key in keys)
        case Ranked(_, partition, number=number):
            # A row with a place is the row at this place: another tuple makes it another row.
            own = {each.name for each in partition} & (below[0] or frozenset())
            return None if below[0] is None else frozenset(own | {number or ""})
        case _:
            return frozenset(each.schema.names)


def depends_on_others(each: CheckedNode) -> bool:
    """Whether a row of an Aggregate or a Ranked depends on rows below that are not among its own.

    A row of DISTINCT depends on those alone that have its values and its label.
    """
    given = stable_names(each.inputs[0])
    match each.node:
        case Aggregate(_, keys, aggregations):
            return bool(aggregations) and not _reads(given, [key.expression for key in keys])
        case Ranked(_, partition, order):
            return not _reads(given, [*partition, *(key.attribute for key in order)])
        case _:
            raise TypeError("neither groups nor rows in an order")


def _known(several: Sequence[Names | None]) -> list[Names] | None:
    known = [each for each in several if each is not None]
    return known if len(known) == len(several) else None


def _reads(stable: Names | None, expressions: Iterable[Expression]) -> bool:
    """Whether the expressions read stable attributes alone."""
    if stable is None:
        return False
    return all(ref.name in stable for each in expressions for ref in attributes_of(each))
