"""Plan → DataFrame: each node's rule, the label as one more column (004 §3.2, DESIGN the one rule).

Filter and Project copy the label, Union puts labels of one shape together, Join combines both
sides', Aggregate combines the whole group's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.plan import Aggregate, Filter, Join, Plan, Project, Source, Union, is_stateful, walk
from catalog.plan_check import check_plan, output_schema, reach
from catalog.relation import Relation, RelationKind
from catalog.schema import Schema
from secfilter.aggregate import compile_aggregate
from secfilter.columns import ID, attribute, check_names, label_column, words_of
from secfilter.expressions import to_column
from secfilter.join import compile_join
from secfilter.timeline import CLOCK, no_clock, to_clock


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan as a DataFrame: attributes of `schema`, label words `words` (BIGINT), `__id`."""

    frame: DataFrame
    schema: Schema
    words: tuple[int, ...]


def compile_plan(
    plan: Plan, source: Callable[[Relation], DataFrame], *, narrow: bool = False
) -> Compiled:
    """Compile a plan.

    `source` gives a relation's tuples: its attributes, its label words (those of its reach) and
    `__id`; it is called once for each Source. `narrow` says that each source has one partition:
    what keeps state then reads it without a shuffle. Raises InvalidInput for a plan that is not
    well formed or that uses a name of ours.
    """
    check_plan(plan)
    for node in walk(plan):
        check_names(output_schema(node))
    words = words_of(reach(plan))
    compiler = _Compiler(source, words, is_stateful(plan), narrow)
    return Compiled(compiler.compile(plan), output_schema(plan), words)


@dataclass(frozen=True, slots=True)
class _Compiler:
    source: Callable[[Relation], DataFrame]
    words: tuple[int, ...]
    stateful: bool
    narrow: bool
    # Whether what is compiled stands below a join.
    pairing: bool = False

    def compile(self, node: Plan) -> DataFrame:
        match node:
            case Source(relation):
                return self._source(relation)
            case Filter(inner, condition):
                wanted = to_column(condition, output_schema(inner))
                return self.compile(inner).where(wanted)
            case Project():
                return self._project(node)
            case Union(nodes):
                return self._union(nodes)
            case Join():
                sides = replace(self, pairing=True)
                return compile_join(
                    node, sides.compile(node.left), sides.compile(node.right), self.words
                )
            case Aggregate():
                return compile_aggregate(node, self.compile(node.input), self.words)

    def _source(self, relation: Relation) -> DataFrame:
        held = words_of(relation.reach)
        frame = self.source(relation).select(
            *_attributes(relation.schema),
            *(_word_or_none(index, index in held) for index in self.words),
            fn.col(ID),
            *([_clock(relation).alias(CLOCK)] if self.stateful else []),
        )
        if self.stateful and relation.event_time is not None:
            # Before any filter: time goes by all of the relation's tuples.
            delay = f"{self._delay_ms(relation)} milliseconds"
            timed = frame.withWatermark(CLOCK, delay)
            # Behind the watermark, over which Spark forgets that there is one partition only.
            return _each_once(timed.coalesce(1) if self.narrow else timed, relation)
        return frame

    def _delay_ms(self, relation: Relation) -> int:
        """How far Spark's watermark stays behind the relation's newest tuple.

        Joins and leaving out what is repeated drop what is as old as the watermark, not only what
        is older; what lags by just the lateness is in time.
        """
        inclusive = self.pairing or relation.kind is RelationKind.OUTPUT
        return relation.lateness_ms + 1 if inclusive else relation.lateness_ms

    def _project(self, node: Project) -> DataFrame:
        schema = output_schema(node.input)
        columns = [to_column(c.expression, schema).alias(c.name) for c in node.columns]
        return self.compile(node.input).select(*columns, *self._carried(), *self._clock_of(node))

    def _union(self, nodes: tuple[Plan, ...]) -> DataFrame:
        # The results of windows and joins have left the clock behind.
        clock = [] if any(is_stateful(node) for node in nodes) else self._clock_of(nodes[0])
        frames = [self._branch(index, node, clock) for index, node in enumerate(nodes)]
        result = frames[0]
        for frame in frames[1:]:
            result = result.union(frame)
        return result

    def _branch(self, index: int, node: Plan, clock: Sequence[Column]) -> DataFrame:
        # One tuple may come through two branches: these are two results.
        lineage = fn.concat(fn.lit(f"{index}/"), fn.col(ID)).alias(ID)
        attributes = _attributes(output_schema(node))
        return self.compile(node).select(*attributes, *self._words(), lineage, *clock)

    def _words(self) -> list[Column]:
        return [fn.col(label_column(index)) for index in self.words]

    def _clock_of(self, node: Plan) -> list[Column]:
        """The clock column, where the node's tuples have it: below what keeps state."""
        return [fn.col(CLOCK)] if self.stateful and not is_stateful(node) else []

    def _carried(self) -> Iterable[Column]:
        return (*self._words(), fn.col(ID))


def _each_once(timed: DataFrame, relation: Relation) -> DataFrame:
    """An output's results without those that stand there again after a crash of its query.

    They have the lineage that they had before. Ingest puts no tuple into a stream's topic twice, so
    a stream needs no state for it.
    """
    if relation.kind is RelationKind.OUTPUT and timed.isStreaming:
        return timed.dropDuplicatesWithinWatermark([ID])
    return timed


def _clock(relation: Relation) -> Column:
    return no_clock() if relation.event_time is None else to_clock(attribute(relation.event_time))


def _attributes(schema: Schema) -> list[Column]:
    return [attribute(name) for name in schema.names]


def _word_or_none(index: int, held: bool) -> Column:
    if held:
        return fn.col(label_column(index))
    return fn.lit(0).cast("bigint").alias(label_column(index))
