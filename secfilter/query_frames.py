"""Builds the DataFrames of queries, if possible before they are needed.

To build one takes about a second: Spark analyses each of its steps. When a query is to be replaced
by one with other classes, all its readers wait from the end of the old query until the new one
runs. So the new DataFrame is built while the old query still runs, and thrown away if it does not
fit any more when the old query has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from catalog.analysis import analyse
from catalog.label_layout import LabelLayout
from catalog.plan import Emission, ToStream, is_stateful
from catalog.reach import counted_streams
from catalog.relation import Relation
from catalog.runs import FedOutput, FusedRun, QueryRun
from secfilter.backlog import share_of
from secfilter.beginnings import begun, late_outputs
from secfilter.checkpoint import Checkpoint
from secfilter.columns import BEGUN, ECHO
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.fused_fanout import fan_out_fused
from secfilter.kafka_options import Offsets
from secfilter.lab import read_lab
from secfilter.merged_views import merged
from secfilter.order import check_supported, in_order
from secfilter.output_ticker import echo_column, echoes
from secfilter.pace import Pace
from secfilter.standing import receivers_of
from secfilter.tick_mark import TickMark, new_mark

# The records of a lab topic, for a query that may begin at these offsets, and how many of them a
# batch may read.
Records = Callable[[str, Offsets, int | None], DataFrame]

_MOST = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a query goes on, as far as its DataFrame depends on it."""

    start: Offsets
    layout: LabelLayout
    narrow: bool
    late: tuple[FedOutput, ...]

    @classmethod
    def of(cls, run: QueryRun, checkpoint: Checkpoint, layout: LabelLayout) -> Place:
        """The place of the checkpoint, with this layout of labels."""
        # What keeps state is shared only by outputs for which all of its state counts.
        late = () if is_stateful(run.plan) else late_outputs(run, checkpoint.committed())
        return cls(checkpoint.start or {}, layout, checkpoint.narrow(), late)


@dataclass(frozen=True, slots=True)
class Built:
    """A DataFrame of records for Kafka's sink. Echoes of its ticks have the life of the mark."""

    run: QueryRun
    place: Place
    ticks: TickMark
    frame: DataFrame

    def fits(self, run: QueryRun) -> bool:
        """Whether the DataFrame is that of this run, too, if it starts at the same place."""
        if self.place.late or is_stateful(run.plan):
            return self.run == run
        return _without_beginnings(self.run) == _without_beginnings(run)


@dataclass(frozen=True, slots=True)
class QueryFrames:
    """The DataFrames of one engine's queries.

    `id_key` is the key of ids and of marks. `repeats` says whether a tuple may be in lab twice.
    A micro-batch reads `most` records at most (`secfilter.backlog`).
    """

    records: Records
    id_key: str = field(repr=False)
    _prepared: dict[str, Built] = field(default_factory=dict)
    repeats: bool = False
    most: int = Pace().microbatch_records

    def prepare(self, run: QueryRun, place: Place) -> None:
        """Build what `take` gives when the query starts at this place."""
        self._prepared[run.name] = self._build(run, place)
        # One whose query was removed meanwhile is never taken.
        while len(self._prepared) > _MOST:
            self._prepared.pop(next(iter(self._prepared)), None)

    def take(self, run: QueryRun, place: Place) -> Built:
        """What was prepared for this, or else what is built now. Each is given once.

        Raises PlatformError for a plan that cannot run, or what Spark raises.
        """
        prepared = self._prepared.pop(run.name, None)
        if prepared is not None and prepared.place == place and prepared.fits(run):
            return prepared
        return self._build(run, place)

    def _build(self, run: QueryRun, place: Place) -> Built:
        ticks = new_mark(self.id_key)
        return Built(run, place, ticks, self._frame(run, place, ticks))

    def _frame(self, run: QueryRun, place: Place, ticks: TickMark) -> DataFrame:
        count = 0
        checked = analyse(run.plan)
        late, echoing = place.late, echoes(run)
        counted = counted_streams(run.plan)
        most = share_of(run, self.most)

        def source(relation: Relation) -> DataFrame:
            nonlocal count
            beside = {BEGUN: begun(late, relation.topic)} if late else {}
            if echoing:
                beside[ECHO] = echo_column(ticks.life, count)
            count += 1
            reached, metric = run.reach_of(relation), f"source_{count}"
            return read_lab(
                self.records(relation.topic, place.start, most),
                *(relation, reached, metric),
                run.registered,
                ticks=checked.keeps_state and relation.by_ticks,
                senders=relation.object_id in counted,
                beside=beside,
            )

        compiled = compile_plan(
            *(checked, source, run.reach_of, run.numbers_of),
            layout=place.layout,
            narrow=place.narrow,
            classes=run.conflict_classes,
            floor=run.floor,
            viewers=run.viewers,
            by_role=run.by_role,
            beside=(*([BEGUN] if late else []), *([ECHO] if echoing else [])),
            receivers=receivers_of(run),
            repeats=self.repeats,
            tells=any(isinstance(each.node, ToStream) for each in checked.root.walk()),
            readers=[each.relation.object_id for each in run.outputs],
        )
        check_supported(compiled.frame, output_mode(run))
        if run.by_role:
            compiled = replace(compiled, frame=merged(compiled.frame, compiled.layout))
        if is_stateful(run.plan):
            ordered = in_order(compiled.frame, checked.event_time, by_class=run.viewers is not None)
            compiled = replace(compiled, frame=ordered)
        if isinstance(run, FusedRun):
            return fan_out_fused(compiled, run, self.id_key, late=late, echoes=echoing)
        return fan_out(compiled, run, self.id_key, late=late, echoes=echoing)


def _without_beginnings(run: QueryRun) -> QueryRun:
    """The run without what only counts if it reads something from before an output began.

    All members of a fused run begin anew with each start, where the batch before has ended.
    """
    made = replace(run, starting_offsets={}, outputs=tuple(map(_from_first, run.outputs)))
    if isinstance(made, FusedRun):
        return replace(made, members=tuple(map(_without_beginnings, made.members)))
    return made


def _from_first(output: FedOutput) -> FedOutput:
    return replace(output, begins={})


def output_mode(run: QueryRun) -> str:
    """Spark's output mode. The real-time trigger has one alone."""
    closed = run.plan.emission is Emission.CLOSED
    return "append" if closed and is_stateful(run.plan) else "update"
