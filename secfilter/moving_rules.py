"""The rules of the changing relations of a query, as they are sent to a worker."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from catalog.changing_parts import ChangingParts, RelationPart
from catalog.checked_plan import CheckedNode
from catalog.expression import Expression, type_of
from catalog.pair_expressions import (
    RowExpressions,
    RowsBelow,
    SideValues,
    rows_below,
    values_of_sides,
)
from catalog.plan import Aggregate, Change, Moving, Ranked, Source
from catalog.schema import Schema, Type
from secfilter.moving_aggregates import Computed, GroupRow
from secfilter.moving_first_rows import FirstRows, Reach, reach_of
from secfilter.moving_groups import Grouping, Groups
from secfilter.moving_join_rows import JoinRows, Making
from secfilter.moving_joins import Held
from secfilter.moving_ranks import RankRules, Ranks
from secfilter.moving_relation import Doubles, MovingRelation
from secfilter.moving_rows import SingleRows
from secfilter.moving_stages import Below, OwnRows, Stage
from secfilter.moving_totals import totals_of
from secfilter.moving_window import HeldLimits, Window, WindowContent, Words, united
from secfilter.pair_values import RowValues, row_reader

# So many groups of a window without an end are kept, and so many characters of their texts.
MAX_GROUPS = HeldLimits(tuples=50_000, characters=32 * 1024 * 1024)
# So many rows in an order of windows without an end are kept, and so many characters of them.
MAX_FIRST_ROWS = HeldLimits(tuples=100_000, characters=64 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class BelowRules:
    """A side that is a relation of its own, and what is computed for its rows."""

    stage: StageRules
    values: RowsBelow


@dataclass(frozen=True, slots=True)
class StageRules:
    """What one relation makes of its sides: of windows, which are their numbers, and of others.

    `reaches` has all labels that the tuples of each side can carry. `join` is what a join
    computes, `summary` what groups compute. Each is None if the relation has no such thing. The
    sides `witnesses` are those that only decide in a semi join. Each row of a `loose` one depends
    on all rows of the sides. `reach` says which rows in an order can still count if none ever
    leaves; if it is None, all of them can.
    """

    sides: tuple[int | BelowRules, ...]
    reaches: tuple[Words, ...]
    join: RowValues | None
    witnesses: frozenset[int]
    summary: GroupRow | RankRules | None
    loose: bool = False
    reach: Reach | None = None


@dataclass(frozen=True, slots=True)
class RelationRules:
    """The windows of a query, and the relation that it makes of their tuples.

    `keys` says of each value of a row whether it belongs to the key of an upsert. `doubles` has the
    windows whose numbers are compared with those that Python writes.
    """

    windows: tuple[Window, ...]
    change: Change
    root: StageRules
    limits: HeldLimits
    keys: tuple[bool, ...] = ()
    doubles: Mapping[int, Doubles] = field(default_factory=dict)
    # All labels that the tuples of the windows can carry: who covers them may know what they hold.
    reach: Words = ()

    @property
    def tells(self) -> bool:
        """Whether subscribers may know of single tuples that are left out.

        Policies may show windows of tuples where they show no single tuple.
        """
        return all(window.slide_rows is None for window in self.windows)

    def read_by(self, readers: Collection[int] | None) -> RelationRules:
        """The rules of a query to which outputs give their rows that stand by one of these ids."""
        if readers is None:
            return self
        own = frozenset(readers)
        return replace(self, windows=tuple(replace(each, readers=own) for each in self.windows))

    def empty(self) -> MovingRelation:
        """The relation before any tuple has come."""
        contents: dict[int, WindowContent] = {}
        root = self._stage(self.root, contents)
        every = [contents[number] for number in range(len(self.windows))]
        return MovingRelation(
            every, self.change, root, self.limits, self.keys, doubles=self.doubles
        )

    def _stage(self, rules: StageRules, contents: dict[int, WindowContent]) -> Stage:
        groups = self._groups(rules)
        sides: list[WindowContent | Below] = []
        for side in rules.sides:
            if isinstance(side, BelowRules):
                below, read = self._stage(side.stage, contents), row_reader(side.values)
                sides.append(Below(below, read, self.limits.characters))
            else:
                keeps = not isinstance(groups, OwnRows)
                contents[side] = WindowContent(self.windows[side], keeps)
                sides.append(contents[side])
        rows = SingleRows(len(sides)) if rules.join is None else self._joined(rules, rules.join)
        return Stage(sides, rows, groups, rules.loose)

    def _joined(self, rules: StageRules, join: RowValues) -> JoinRows:
        most = HeldLimits(self.limits.tuples, self.limits.characters // join.copies)
        # A constant counts like a part of each value, so as often as values do.
        constants = join.constants // join.copies
        texts = join.computing()
        making = Making(join.schema, texts, Held(most), rules.reaches, constants)
        return JoinRows(making.join(join.rules, last=True), texts, rules.witnesses)

    def _groups(self, rules: StageRules) -> Grouping | None:
        summary = rules.summary
        if summary is None:
            return None
        endless = rules.join is None and all(
            isinstance(side, int) and self.windows[side].is_endless for side in rules.sides
        )
        # A row of RSTREAM carries the labels of all tuples in the window, so it needs them.
        keeps_few = endless and self.change is not Change.RSTREAM
        if isinstance(summary, RankRules):
            if keeps_few and rules.reach is not None:
                sides = len(rules.sides)
                return FirstRows(summary, {}, rules.reach, MAX_FIRST_ROWS, sides)
            return Ranks(summary)
        if keeps_few:
            totals = totals_of(summary, MAX_GROUPS)
            if totals is not None:
                return totals
        return Groups(summary, by_subject=bool(rules.witnesses) and not summary.distinct)


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

    `reaches` has all labels that the tuples of each window can carry. With `whole`, windows over
    upserts begin with all rows that stand, where the output gives them.
    """
    windows = tuple(_window(each.moving, whole=whole) for each in parts.windows())
    own = tuple(name in keys for name in parts.names)
    made = _Making(reaches, nested=len([*parts.relations()]) > 1)
    root = made.stage(parts)
    return RelationRules(windows, change, root, limits, own, made.doubles, united(reaches))


@dataclass
class _Making:
    """Makes the rules of relations. `reaches` are those of the windows.

    If relations are `nested`, Python compares its own numbers with those of the windows.
    """

    reaches: Sequence[Words]
    nested: bool
    doubles: dict[int, Doubles] = field(default_factory=dict)

    def stage(self, parts: ChangingParts, *, once: bool = True) -> StageRules:
        """The rules of a relation, and of those below it.

        `once` says that each of its rows counts when it comes, and in no group or join after that.
        """
        made = None if parts.join is None else RowExpressions(parts, parts.join)
        join, witnesses = None, frozenset[int]()
        if made is not None:
            values = (made.values.schema(), made.rules, made.shown, made.arguments)
            join = RowValues(len(parts.sides()), *values)
            witnesses = made.rules.witnesses
        read = values_of_sides(parts, made)
        summary = _summary(parts, witnesses)
        inner = once and summary is None and join is None
        sides = [self._side(each, once=inner) for each in read]
        reaches = (
            united(self.reaches[window.window] for window in each.side.windows()) for each in read
        )
        reach = _reach(parts, summary, once=once) if isinstance(summary, RankRules) else None
        own = (tuple(sides), tuple(reaches), join, witnesses, summary, parts.loose, reach)
        return StageRules(*own)

    def _side(self, values: SideValues, *, once: bool) -> int | BelowRules:
        side = values.side
        if isinstance(side, RelationPart):
            return BelowRules(self.stage(side.parts, once=once), rows_below(side, values))
        if self.nested:
            self.doubles[side.window] = (
                _doubles(values.row, side.schema),
                _doubles(values.arguments, side.schema),
            )
        return side.window


def _doubles(expressions: Sequence[Expression], schema: Schema) -> tuple[int, ...]:
    kinds = (type_of(each, schema) for each in expressions)
    return tuple(place for place, kind in enumerate(kinds) if kind is Type.DOUBLE)


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


def _reach(parts: ChangingParts, rules: RankRules, *, once: bool) -> Reach | None:
    """Which rows in an order can still count if none ever leaves. None if all of them can.

    Without a limit a row stays in what is above it, also when its neighbours are there.
    """
    if not isinstance(parts.top, Ranked) or (rules.limit is None and not once):
        return None
    first = parts.top.order[0]
    by_time = first.attribute.name == parts.event_time
    return reach_of(rules, newest_first=first.descending if by_time else None)


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
    begins = whole and stands
    return Window(
        *(range_us, window.rows, slide_us, begins, window.slide_rows), of_all=window.of_all
    )


def _computed(aggregate: Aggregate, schema: Schema) -> tuple[Computed, ...]:
    found, place = [], 0
    for each in aggregate.aggregations:
        if each.argument is None:
            found.append(Computed(each.function))
        else:
            found.append(Computed(each.function, type_of(each.argument, schema), place))
            place += 1
    return tuple(found)
