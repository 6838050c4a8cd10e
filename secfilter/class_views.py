"""Views of classes: each class gets the results of a plan over the tuples that it may see.

With semantics `exact`, a view is that of one role of a class (`secfilter.merged_views`).

The fan-out is above each source, before the first node that keeps state: a tuple is there once
for each class that may see it. From there on the class is in the key of all state. So classes share
one Spark query and nothing else. The shape of the state, and the operators, do not depend on which
classes there are: only the literals here do (000 §5.2.1, partitioned windows; 001 §4.1, the stream
shepherd).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.relation import RelationKind
from catalog.runs import FanOutClass
from secfilter.columns import CLASS, ID
from secfilter.label_words import words
from secfilter.visibility import in_layout, visible_to

_DIGITS = 19


@dataclass(frozen=True, slots=True)
class ClassViews:
    """The classes, whose ids are those of the catalog, and the layout of their labels.

    If they are views `by_role`, a class has several, and a result can be in several of them.
    Raises ValueError if two classes could not be told apart, or if one is no whole strong class.
    """

    classes: tuple[FanOutClass, ...]
    layout: LabelLayout
    by_role: bool = False

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.classes) or not all(each.id > 0 for each in self.classes):
            raise ValueError("classes with views of their own need ids of their own")
        if any(each.weak or each.beyond is not None for each in self.classes):
            raise ValueError("a class with a view of its own is whole and strong")

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the classes."""
        return frozenset(each.id for each in self.classes)

    def divided(self, frame: DataFrame, kind: RelationKind) -> DataFrame:
        """Each tuple once for each class that may see it, with the class's id in `CLASS`.

        `kind` is that of the relation. Tuples of a stream have lineages that are in the order of
        their offsets, also as texts. Otherwise tuples of one time, such as 9 and 10, would change
        places if a hidden tuple came before them.
        """
        seen = [fn.when(self._sees(each), _id(each.id)) for each in self.classes]
        return _spread(frame, kind, seen)

    def to_all(self, frame: DataFrame, kind: RelationKind) -> DataFrame:
        """As `divided`, but each tuple once for each class, also for those that may not see it."""
        return _spread(frame, kind, [_id(each.id) for each in self.classes])

    def seen(self) -> Column:
        """Whether the class in `CLASS` may see the tuple."""
        each_seen = [(fn.col(CLASS) == _id(c.id)) & self._sees(c) for c in self.classes]
        return reduce(lambda a, b: a | b, each_seen, fn.lit(False))

    def _sees(self, each: FanOutClass) -> Column:
        return visible_to(in_layout(each, self.layout), words(self.layout), Label())


def _spread(frame: DataFrame, kind: RelationKind, ids: Sequence[Column]) -> DataFrame:
    """Each tuple once for each of these ids of classes that is not NULL."""
    if kind is RelationKind.STREAM:
        frame = frame.withColumn(ID, _in_order(fn.col(ID)))
    spread = frame.withColumn(CLASS, fn.explode(fn.array(*ids, _nobody())))
    return spread.where(fn.col(CLASS).isNotNull())


def _in_order(lineage: Column) -> Column:
    """The lineage of a stream's tuple. It ends with an offset, which gets zeros before it."""
    offset = fn.substring_index(lineage, ":", -1)
    before = fn.substr(lineage, fn.lit(1), fn.length(lineage) - fn.length(offset))
    return fn.concat(before, fn.lpad(offset, _DIGITS, "0"))


def _nobody() -> Column:
    """No class, in a form that Spark does not simplify.

    If it knew that there is no class, it would leave out the sources and what keeps state.
    """
    return fn.when(fn.octet_length(fn.col(ID)) < fn.lit(0), _id(0))


def _id(of: int) -> Column:
    return fn.lit(of).cast("bigint")


def lineage_in(views: ClassViews | None, lineage: Column) -> Column:
    """The lineage of a result that depends on which tuples a class may see.

    Two classes may have other results of one window. So the lineage begins with the class. If the
    views are by role, it gets the class when they are merged, and until then equal results of two
    roles have equal lineages.
    """
    if views is None or views.by_role:
        return lineage
    return fn.concat_ws(":", fn.col(CLASS).cast("string"), lineage)
