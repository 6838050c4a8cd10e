"""The rules of labels, over plain sets of categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.plan import Aggregate, Node, Source, Window, Windowed
from catalog.relation import DeclaredAggregate, Relation
from tests.oracle.values import EPOCH, Tuple, Value


def is_visible(each: Tuple, relation: Relation, reach: Label) -> bool:
    """Whether Source lets a tuple in: its label can be read, and can occur in the relation.

    `reach` holds all categories that can occur there.
    """
    if each.label is None:
        return False
    carried, possible = set(each.label.categories()), set(reach.categories())
    return carried <= possible and (bool(carried) or relation.public)


def united(labels: Iterable[Label | None]) -> Label:
    """The label of what comes from all of these tuples."""
    return Label.of(*{c for label in labels if label is not None for c in label.categories()})


def declared_aggregate(node: Node) -> DeclaredAggregate | None:
    """What the stream's owner declared, where the node is just that aggregate; else None."""
    match node:
        case Aggregate(Windowed(Source(relation), Window() as window), keys, aggregations):
            declared = relation.declared
        case _:
            return None
    lengths = {window.size_ms, window.slide_ms}
    if declared is None or lengths != {declared.window_ms} or window.offset_ms:
        return None
    if Counter(key.expression for key in keys) != Counter(map(AttributeRef, declared.keys)):
        return None
    arguments = [each.argument for each in aggregations if each.argument is not None]
    plain = all(type(argument) is AttributeRef for argument in arguments)
    return (
        declared if plain and {a.function for a in aggregations} <= {*declared.functions} else None
    )


def lowered(
    label: Label, counts: Sequence[int], start: Value, declared: DeclaredAggregate
) -> Label:
    """The label of a group of a declared aggregate, which gives "aggregated" for "source".

    Only where enough independent users sent tuples, and values of each attribute (`counts`), and
    only of windows that the query has seen whole; every other category stays.
    """
    since = EPOCH + timedelta(milliseconds=declared.since_ms)
    whole = isinstance(start, datetime) and start >= since
    if not whole or min(counts) < declared.minimum or declared.source not in label.categories():
        return label
    kept = (each for each in label.categories() if each != declared.source)
    return Label.of(*kept, declared.aggregated)
