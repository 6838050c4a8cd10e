"""The rules of one changing relation, as they are sent to a worker."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.changing_parts import ChangingParts
from catalog.checked_plan import CheckedNode
from catalog.expression import type_of
from catalog.pair_expressions import PairExpressions
from catalog.plan import Aggregate, Change, Moving, MovingJoin
from catalog.schema import Schema
from secfilter.moving_aggregates import Computed, GroupRow
from secfilter.moving_groups import Groups
from secfilter.moving_relation import MovingRelation
from secfilter.moving_rows import PairRows, Rows, SingleRows
from secfilter.moving_window import HeldLimits, Window, WindowContent
from secfilter.pair_values import PairValues


@dataclass(frozen=True, slots=True)
class RelationRules:
    """The windows of a relation, and what it makes of their tuples.

    `pairs` is what a join of two windows computes, `summary` what groups compute. Each is None if
    the relation has no such thing.
    """

    windows: tuple[Window, ...]
    change: Change
    pairs: PairValues | None
    summary: GroupRow | None
    limits: HeldLimits

    def empty(self) -> MovingRelation:
        """The relation before any tuple has come."""
        rows: Rows = SingleRows()
        if self.pairs is not None:
            most = HeldLimits(self.limits.tuples, self.limits.characters // self.pairs.copies)
            # A constant counts like a part of each value, so as often as values do.
            constants = self.pairs.constants // self.pairs.copies
            rows = PairRows(self.pairs.pairing(), most, constants)
        return MovingRelation(
            [WindowContent(window) for window in self.windows],
            self.change,
            rows,
            None if self.summary is None else Groups(self.summary),
            self.limits,
        )


def rules_of(parts: ChangingParts, change: Change, limits: HeldLimits) -> RelationRules:
    """The rules of a relation whose parts are checked."""
    windows = tuple(_window(moving) for moving, _ in parts.windows())
    aggregate, pairs, schema = parts.aggregate, None, parts.schema
    if isinstance(parts.base.node, MovingJoin):
        made = PairExpressions(parts)
        pairs = PairValues(made.sides.schema(), made.conditions, made.shown, made.arguments)
    summary = None
    if aggregate is not None:
        places = [key.name for key in aggregate.keys] + [a.name for a in aggregate.aggregations]
        summary = GroupRow(
            len(aggregate.keys),
            _computed(aggregate, schema),
            tuple(places.index(name) for name in parts.shown),
        )
    return RelationRules(windows, change, pairs, summary, limits)


def _window(moving: CheckedNode) -> Window:
    if not isinstance(moving.node, Moving):
        raise TypeError("a relation without a moving window")
    window = moving.node.window
    range_us, slide_us = (
        None if length is None else length * 1_000 for length in (window.range_ms, window.slide_ms)
    )
    return Window(range_us, window.rows, slide_us)


def _computed(aggregate: Aggregate, schema: Schema) -> tuple[Computed, ...]:
    found, place = [], 0
    for each in aggregate.aggregations:
        if each.argument is None:
            found.append(Computed(each.function))
        else:
            found.append(Computed(each.function, type_of(each.argument, schema), place))
            place += 1
    return tuple(found)
