"""The rules of one changing relation, as they are sent to a worker."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from catalog.changing_parts import ChangingParts
from catalog.checked_plan import CheckedNode
from catalog.expression import type_of
from catalog.pair_expressions import RowExpressions
from catalog.plan import Aggregate, Change, Moving, Ranked, Source
from catalog.schema import Schema
from secfilter.moving_aggregates import Computed, GroupRow
from secfilter.moving_groups import Grouping, Groups
from secfilter.moving_join_rows import JoinRows, Making
from secfilter.moving_joins import Held
from secfilter.moving_ranks import RankRules, Ranks
from secfilter.moving_relation import MovingRelation
from secfilter.moving_rows import SingleRows
from secfilter.moving_totals import Totals, totals_of
from secfilter.moving_window import HeldLimits, Window, WindowContent, Words
from secfilter.pair_values import RowValues

# So many groups of a window without an end are kept, and so many characters of their texts.
MAX_GROUPS = HeldLimits(tuples=50_000, characters=32 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class RelationRules:
    """The windows of a relation, and what it makes of their tuples.

    `reaches` has all labels that the tuples of each window can carry. `join` is what a join
    computes, `summary` what groups compute. Each is None if the relation has no such thing. The
    windows `witnesses` are those that only decide in a semi join. `keys` says of each value of a
    row whether it belongs to the key of an upsert.
    """

    windows: tuple[Window, ...]
    reaches: tuple[Words, ...]
    change: Change
    join: RowValues | None
    witnesses: frozenset[int]
    summary: GroupRow | RankRules | None
    limits: HeldLimits
    keys: tuple[bool, ...] = ()

    def empty(self) -> MovingRelation:
        """The relation before any tuple has come."""
        groups = None if self.summary is None else self._groups(self.summary)
        keeps = not isinstance(groups, Totals)
        return MovingRelation(
            [WindowContent(window, keeps) for window in self.windows],
            self.change,
            SingleRows(len(self.windows)) if self.join is None else self._joined(self.join),
            groups,
            self.limits,
            self.keys,
        )

    def _joined(self, join: RowValues) -> JoinRows:
        most = HeldLimits(self.limits.tuples, self.limits.characters // join.copies)
        # A constant counts like a part of each value, so as often as values do.
        constants = join.constants // join.copies
        texts = join.computing()
        making = Making(join.schema, texts, Held(most), self.reaches, constants)
        return JoinRows(making.join(join.rules, last=True), texts, self.witnesses)

    def _groups(self, summary: GroupRow | RankRules) -> Grouping:
        if isinstance(summary, RankRules):
            return Ranks(summary)
        endless = self.join is None and all(window.is_endless for window in self.windows)
        # A row of RSTREAM carries the labels of all tuples in the window, so it needs them.
        if endless and self.change is not Change.RSTREAM:
            totals = totals_of(summary, MAX_GROUPS)
            if totals is not None:
                return totals
        return Groups(summary, by_subject=bool(self.witnesses) and not summary.distinct)


def rules_of(
    parts: ChangingParts,
    change: Change,
    limits: HeldLimits,
    reaches: Sequence[Words],
    keys: Collection[str] = (),
    *,
    whole: bool = False,
) -> RelationRules:
    """The rules of a relation whose parts are checked. `keys` names the key of upserts.

    With `whole`, windows over upserts begin with all rows that stand, where the output gives them.
    """
    join, witnesses = None, frozenset[int]()
    if parts.join is not None:
        made = RowExpressions(parts, parts.join)
        values = (made.values.schema(), made.rules, made.shown, made.arguments)
        join = RowValues(len(parts.windows()), *values)
        witnesses = made.rules.witnesses
    windows = tuple(_window(each.moving, whole=whole) for each in parts.windows())
    summary = _summary(parts, witnesses)
    own = tuple(name in keys for name in parts.shown)
    return RelationRules(windows, tuple(reaches), change, join, witnesses, summary, limits, own)


def _summary(parts: ChangingParts, witnesses: frozenset[int]) -> GroupRow | RankRules | None:
    match parts.top:
        case Aggregate(_, keys, aggregations) as aggregate:
            places = [key.name for key in keys] + [a.name for a in aggregations]
            shown = tuple(places.index(name) for name in parts.shown)
            return GroupRow(len(keys), _computed(aggregate, parts.schema), shown)
        case Ranked() as ranked:
            return _ranks(parts, ranked)
        case None if witnesses:
            # A row for each left row and label, however many witnesses there are.
            count = len(parts.shown)
            return GroupRow(count, (), tuple(range(count)), distinct=False)
        case None:
            return None


def _ranks(parts: ChangingParts, ranked: Ranked) -> RankRules:
    own = [name for name in parts.schema.names if name in parts.shown]
    order = ((type_of(key.attribute, parts.schema), key.descending) for key in ranked.order)
    places = [*own, ranked.number or "", *(each.name for each in ranked.neighbours)]
    return RankRules(
        len(own),
        len(ranked.partition),
        tuple(order),
        tuple(each.offset for each in ranked.neighbours),
        ranked.limit,
        ranked.by_place,
        tuple(places.index(name) for name in parts.shown),
    )


def _window(moving: CheckedNode, *, whole: bool) -> Window:
    if not isinstance(moving.node, Moving):
        raise TypeError("a relation without a moving window")
    window = moving.node.window
    range_us, slide_us = (
        None if length is None else length * 1_000 for length in (window.range_ms, window.slide_ms)
    )
    below = moving.node.input
    stands = isinstance(below, Source) and bool(below.relation.keys) and below.relation.by_ticks
    return Window(range_us, window.rows, slide_us, whole and stands)


def _computed(aggregate: Aggregate, schema: Schema) -> tuple[Computed, ...]:
    found, place = [], 0
    for each in aggregate.aggregations:
        if each.argument is None:
            found.append(Computed(each.function))
        else:
            found.append(Computed(each.function, type_of(each.argument, schema), place))
            place += 1
    return tuple(found)
