"""Reach: the categories that results of a plan can carry. Lowering: which aggregate does it."""

from __future__ import annotations

from collections.abc import Callable

from catalog.expression import AttributeRef
from catalog.label import Label, combine
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Node,
    Plan,
    SessionWindow,
    Source,
    Window,
    Windowed,
    source_nodes,
    walk,
)
from catalog.relation import DeclaredAggregate, Relation

ReachOf = Callable[[Relation], Label]
"""Gives every category that a tuple of a relation can carry at this moment."""


def reach(plan: Plan, of: ReachOf) -> Label:
    """All categories that a result can carry. `of` gives those of a relation's tuples."""
    own = (of(each.relation) for each in source_nodes(plan))
    lowered = (found.aggregated for _, found in _lowering(plan))
    return combine(own) | Label.of(*lowered)


def is_public(plan: Plan) -> bool:
    """Whether a result can carry the empty label."""
    return any(each.relation.public for each in source_nodes(plan))


def lowers(node: Node, emission: Emission) -> DeclaredAggregate | None:
    """The declared aggregate if this node is one. None means that results keep the source category.

    The node must read the source directly, have the declared keys and window, and use only declared
    functions of plain attributes. With updates it is never one: two updates in a row may differ by
    one tuple, and so reveal it.
    """
    found = _straight(node)
    if found is None or emission is Emission.UPDATES:
        return None
    aggregate, window, declared = found
    fits = (
        window == Window(declared.window_ms, declared.window_ms)
        and sorted(_plain_names(aggregate.keys)) == sorted(declared.keys)
        and len(aggregate.keys) == len(declared.keys)
        and all(_is_declared(a, declared.functions) for a in aggregate.aggregations)
    )
    return declared if fits else None


def lowered_streams(plan: Plan) -> frozenset[int]:
    """The ids of the streams whose declared aggregate is in the plan (`lowers`)."""
    return frozenset(stream for stream, _ in _lowering(plan))


def counted_streams(plan: Plan) -> frozenset[int]:
    """The ids of the streams of whose tuples the plan counts the independent senders."""
    counting = (n for n in walk(plan.root) if isinstance(n, Aggregate) and n.enough is not None)
    below = (each for node in counting for each in walk(node) if isinstance(each, Source))
    return lowered_streams(plan) | {each.relation.object_id for each in below}


def _lowering(plan: Plan) -> list[tuple[int, DeclaredAggregate]]:
    """The declared aggregates in the plan, each with the id of its stream."""
    found = []
    for node in walk(plan.root):
        declared = lowers(node, plan.emission)
        if declared is not None:
            found += [
                (below.relation.object_id, declared)
                for below in walk(node)
                if isinstance(below, Source)
            ]
    return found


def _straight(node: Node) -> tuple[Aggregate, Window | SessionWindow, DeclaredAggregate] | None:
    """An aggregate over windows directly over a source, and the source's declared aggregate."""
    match node:
        case Aggregate(Windowed(Source(relation), window)) if relation.declared is not None:
            return node, window, relation.declared
        case _:
            return None


def _plain_names(columns: tuple[Column, ...]) -> list[str]:
    return [c.expression.name for c in columns if isinstance(c.expression, AttributeRef)]


def _is_declared(aggregation: Aggregation, functions: tuple[str, ...]) -> bool:
    plain = aggregation.argument is None or isinstance(aggregation.argument, AttributeRef)
    return plain and aggregation.function in functions
