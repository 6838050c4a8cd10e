"""Windowed aggregates: the result carries the categories of its whole group (004 §3.2).

The one exception is the aggregate that the stream's owner declared (aggregate-read).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.aggregates import keeps_values
from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Expression, type_of
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Emission,
    SessionWindow,
    Window,
    Windowed,
)
from catalog.plan_check import distinct_arguments
from catalog.reach import lowers
from catalog.relation import DeclaredAggregate
from catalog.runs import SenderNumbers
from catalog.schema import Schema, Type
from secfilter.aggregation import PART, of_values, result_of, state_of
from secfilter.class_views import ClassViews, lineage_in
from secfilter.columns import CLASS, ID, label_column, quoted
from secfilter.expressions import to_column
from secfilter.independent import count_of, mask_of
from secfilter.lab import encode_attribute, joined
from secfilter.label_words import words
from secfilter.timeline import CLOCK, from_clock, last_moment, window_on

_WINDOW, _COUNT = "__window", "__count"
# Where different values are kept: whether a row stands for its tuple itself, or for a value.
_BRANCH = "__branch"
_TUPLE = 0
# Which of the rows that are alike may come again: no two of the tuples themselves are alike.
_ONCE = "__once"
_SENDERS = "__senders_"


@dataclass(frozen=True, slots=True)
class Grouping:
    """An aggregate, the windows that it reads, and when its results are sent.

    `independent` has the numbers of the senders that count for a minimum of them. With `views`,
    each class has groups of its own. `clocked` says that another window goes over the results, so
    that they need a clock.
    """

    node: Aggregate
    windows: CheckedNode
    emission: Emission
    independent: SenderNumbers = field(default_factory=dict)
    views: ClassViews | None = None
    clocked: bool = False

    @property
    def by(self) -> tuple[str, ...]:
        """The platform's columns in which the tuples of a group are equal, first in its key."""
        return () if self.views is None else (CLASS,)

    @property
    def declared(self) -> DeclaredAggregate | None:
        """The declared aggregate that this one is, or None."""
        return lowers(self.node, self.emission)

    @property
    def least(self) -> int | None:
        """How many senders a group needs, to be lowered or to have a result. None: no number."""
        enough = self.node.enough
        if enough is not None:
            return enough.minimum
        return None if self.declared is None else self.declared.minimum

    @property
    def counted(self) -> list[Expression]:
        """The expressions of which so many senders must have sent values, each once."""
        if self.node.enough is not None:
            return [AttributeRef(name) for name in self.node.enough.of]
        arguments = (each.argument for each in self.node.aggregations)
        return list(dict.fromkeys(each for each in arguments if each is not None))

    @property
    def counted_values(self) -> tuple[Expression, ...]:
        """What the aggregate keeps the different values of."""
        return distinct_arguments(self.node)

    @property
    def schema(self) -> Schema:
        """The attributes of the tuples that are grouped."""
        return self.windows.schema

    @property
    def window(self) -> Window | SessionWindow:
        """The windows. Raises TypeError if there are none, which `check_node` does not allow."""
        if not isinstance(self.windows.node, Windowed):
            raise TypeError("an aggregate without windows")
        return self.windows.node.window


def compile_aggregate(grouping: Grouping, frame: DataFrame, layout: LabelLayout) -> DataFrame:
    """Group by window and keys. Tuples with a NULL key form their own group.

    Without updates, each result is given once, when the watermark has passed the window's end
    (append mode). With updates, it is given after each micro-batch that had tuples of its group
    (update mode).
    """
    node, schema = grouping.node, grouping.schema
    if not grouping.counted_values:
        grouped = _grouped(grouping, frame, layout)
    elif grouping.emission is Emission.UPDATES:
        grouped = _updated(grouping, frame, layout)
    else:
        grouped = _merged(grouping, _grouped(grouping, frame, layout), layout)
    grouped = grouped.where(_all_read(grouped))
    if node.enough is not None:
        grouped = grouped.where(_has_enough(grouping, node.enough.minimum))
    results = [result_of(i, a, schema).alias(a.name) for i, a in enumerate(node.aggregations)]
    return grouped.select(
        _start().alias(WINDOW_START),
        from_clock(fn.col(f"{_WINDOW}.end")).alias(WINDOW_END),
        *(fn.col(_key(i)).alias(key.name) for i, key in enumerate(node.keys)),
        *results,
        *_labels(grouping, layout),
        lineage_in(grouping.views, _lineage(grouping)).alias(ID),
        *map(fn.col, grouping.by),
        *([last_moment(fn.col(f"{_WINDOW}.end"))] if grouping.clocked else []),
    )


def _grouped(grouping: Grouping, frame: DataFrame, layout: LabelLayout) -> DataFrame:
    """The groups of windows and keys. Each different value that is kept has a group of its own."""
    node, schema = grouping.node, grouping.schema
    values = grouping.counted_values
    rows = _branches(frame, [to_column(each, schema) for each in values]) if values else frame
    return rows.groupBy(
        *grouping.by,
        window_on(fn.col(CLOCK), grouping.window).alias(_WINDOW),
        *_keys(grouping),
        *map(fn.col, _branch_columns(len(values))),
    ).agg(
        *(part for i, a in enumerate(node.aggregations) for part in state_of(i, a, schema)),
        *_united(layout),
        fn.count(fn.lit(1)).alias(_COUNT),
        *(_senders(grouping) if grouping.least is not None else ()),
    )


def _updated(grouping: Grouping, frame: DataFrame, layout: LabelLayout) -> DataFrame:
    """The groups of windows and keys with different values, if each update is given.

    Spark has no second grouping above one that gives updates. So the repeats of a value are removed
    below the groups: each tuple passes once for itself, and once for each value that is new in its
    window and keys. No policy asks for a number of senders here.
    """
    node, schema, values = grouping.node, grouping.schema, grouping.counted_values
    rows = _branches(
        frame, [_as_keys_are(to_column(each, schema), each, schema) for each in values]
    )
    is_own = fn.col(_BRANCH) == fn.lit(_TUPLE)
    named = [_key(index) for index in range(len(node.keys))]
    placed = rows.select(
        *(fn.col(quoted(name)) for name in rows.columns if name != CLOCK),
        # From here on the window has the time. Spark allows one such column.
        fn.col(CLOCK).alias(CLOCK, metadata={"place": "of a tuple"}),
        window_on(fn.col(CLOCK), grouping.window).alias(_WINDOW),
        *(
            _as_keys_are(to_column(key.expression, schema), key.expression, schema).alias(name)
            for name, key in zip(named, node.keys, strict=True)
        ),
        fn.when(is_own, fn.col(ID)).alias(_ONCE),
    )
    once = [*grouping.by, _WINDOW, *named, *_branch_columns(len(values)), _ONCE]
    return (
        placed.dropDuplicates(once)
        .groupBy(*grouping.by, _WINDOW, *named)
        .agg(
            *(
                part
                for i, a in enumerate(node.aggregations)
                for part in state_of(i, a, schema, is_own)
            ),
            *_of_different(grouping),
            *_united(layout),
            fn.count(fn.when(is_own, fn.lit(1))).alias(_COUNT),
        )
    )


def _as_keys_are(value: Column, expression: Expression, schema: Schema) -> Column:
    """The value as Spark has it in the keys of groups: minus zero is zero."""
    if type_of(expression, schema) is not Type.DOUBLE:
        return value
    return fn.when(value == fn.lit(0.0), fn.lit(0.0)).otherwise(value)


def _keys(grouping: Grouping) -> list[Column]:
    """The keys, by which Spark groups beside the window."""
    keys = [to_column(key.expression, grouping.schema) for key in grouping.node.keys]
    if not keys and isinstance(grouping.window, SessionWindow):
        # Spark wants a key beside a session window, and one that it cannot see to be constant.
        keys = [fn.hash(fn.col(CLOCK)).bitwiseAND(fn.lit(0))]
    return [key.alias(_key(index)) for index, key in enumerate(keys)]


def _united(layout: LabelLayout) -> list[Column]:
    """The labels of all tuples of a group."""
    return [
        fn.bit_or(fn.col(label_column(index))).alias(label_column(index)) for index in words(layout)
    ]


def _branch_columns(values: int) -> list[str]:
    """What an aggregate that keeps different values groups by in addition."""
    return [_BRANCH, *map(_value, range(values))] if values else []


def _branches(frame: DataFrame, values: Sequence[Column]) -> DataFrame:
    """Each tuple several times: for itself, and for each of these values.

    A row for a value has only that one. So each different value gets its own group.
    """
    empty = [fn.when(fn.lit(False), value) for value in values]
    rows = [
        fn.struct(
            fn.lit(branch).alias(_BRANCH),
            *(
                (value if index == branch - 1 else empty[index]).alias(_value(index))
                for index, value in enumerate(values)
            ),
        )
        for branch in range(len(values) + 1)
    ]
    return frame.select("*", fn.inline(fn.array(*rows)))


def _merged(grouping: Grouping, grouped: DataFrame, layout: LabelLayout) -> DataFrame:
    """The groups of the tuples themselves, with what is known of the different values.

    NULL is a group that does not count.
    """
    own = [name for name in grouped.columns if name.startswith((PART, _SENDERS, _COUNT))]
    is_own = fn.col(_BRANCH) == fn.lit(_TUPLE)
    keys = [_key(index) for index in range(len(grouping.node.keys))]
    return grouped.groupBy(*grouping.by, _WINDOW, *keys).agg(
        # There is one group of tuples.
        *(fn.max(fn.when(is_own, fn.col(name))).alias(name) for name in own),
        *_of_different(grouping),
        *_united(layout),
    )


def _of_different(grouping: Grouping) -> list[Column]:
    """The state of the aggregates of different values, over rows of which each has one."""
    values = grouping.counted_values
    return [
        part
        for index, each in enumerate(grouping.node.aggregations)
        if keeps_values(each.function) and each.argument is not None
        for part in of_values(
            *(index, each, fn.col(_value(values.index(each.argument))), grouping.schema)
        )
    ]


def _all_read(grouped: DataFrame) -> Column:
    """The constant true, in a form that depends on every column.

    Spark keeps in an aggregate's state only the columns that are read above it, in the order in
    which they are read. The shape of the state must not change when classes come and go.
    """
    return fn.hash(*(fn.col(name) for name in grouped.columns)) >= fn.lit(-(2**31))


def _start() -> Column:
    """The start of a group's window."""
    return from_clock(fn.col(f"{_WINDOW}.start"))


def _key(index: int) -> str:
    return f"__key_{index}"


def _mask(index: int) -> str:
    return f"{_SENDERS}{index}"


def _value(index: int) -> str:
    return f"__value_{index}"


def _senders(grouping: Grouping) -> list[Column]:
    """The masks of the independent senders, one for each attribute that is counted.

    A sender counts for an attribute if one of its tuples has a value of it.
    """
    known = [to_column(each, grouping.schema).isNotNull() for each in grouping.counted]
    masks = (mask_of(grouping.independent, each) for each in known or [fn.lit(True)])
    return [mask.alias(_mask(index)) for index, mask in enumerate(masks)]


def _has_enough(grouping: Grouping, minimum: int) -> Column:
    """Whether there are enough independent senders, for each attribute that is counted."""
    masks = range(len(grouping.counted) or 1)
    counts = (count_of(fn.col(_mask(index)), grouping.independent) for index in masks)
    return reduce(and_, (count >= fn.lit(minimum) for count in counts))


def _labels(grouping: Grouping, layout: LabelLayout) -> list[Column]:
    plain = {index: fn.col(label_column(index)) for index in words(layout)}
    declared = grouping.declared
    if declared is None:
        return list(plain.values())
    source = layout.packed(Label.of(declared.source))
    aggregated = layout.packed(Label.of(declared.aggregated))
    whole = fn.unix_millis(_start()) >= fn.lit(declared.since_ms)
    enough = _has_enough(grouping, declared.minimum) & whole & _any_of(plain, source)
    return [
        fn.when(enough, _replaced(word, source.word(index), aggregated.word(index)))
        .otherwise(word)
        .alias(label_column(index))
        for index, word in plain.items()
    ]


def _any_of(label: Mapping[int, Column], bits: Label) -> Column:
    """Whether the label has one of the bits."""
    held = (label[index].bitwiseAND(_bigint(bits.word(index))) for index in bits.word_indexes())
    return reduce(or_, (word != fn.lit(0) for word in held), fn.lit(False))


def _replaced(word: Column, removed: int, added: int) -> Column:
    """The word without the bits `removed` and with the bits `added`."""
    return word.bitwiseAND(_bigint(~removed)).bitwiseOR(_bigint(added))


def _bigint(value: int) -> Column:
    return fn.lit(value).cast("bigint")


def _lineage(grouping: Grouping) -> Column:
    """The lineage: window and keys. It is the same each time that the same tuples are read.

    With updates, it also has the number of tuples in the group, which differs between updates.
    """
    start = fn.unix_micros(_start()).cast("string")
    types = [type_of(key.expression, grouping.schema) for key in grouping.node.keys]
    keys = [encode_attribute(fn.col(_key(i)), type_) for i, type_ in enumerate(types)]
    counts = [fn.col(_COUNT).cast("string")] if grouping.emission is Emission.UPDATES else []
    return joined([fn.concat(fn.lit("w"), start), *keys, *counts])
