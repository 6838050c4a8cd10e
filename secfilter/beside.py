"""What a side run delivers beside the main run of a query, and when it has done so.

A stateless query is planned anew only at the end of its batch, which may last a minute. Until then
a side run feeds the topics that the query does not feed yet: those of new classes, and
lab.<output> if other queries have begun to read the output. It is the same plan over the same
topics, from their ends on, in short batches. From where the main run begins with these topics, it
delivers to them itself. So the side run has done its work when it has delivered all that comes
before. What both deliver has the same id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from catalog.plan import is_stateful
from catalog.runs import QueryRun, Run
from secfilter.kafka_options import EARLIEST, Offsets

_SIDE = "-side"


def side_name(run: str) -> str:
    """The name of the side run of that run; no other run has it."""
    return f"{run}{_SIDE}"


def is_side(name: str) -> bool:
    """Whether that is the name of a side run."""
    return name.endswith(_SIDE)


def fed_by(run: Run | None) -> frozenset[str]:
    """The topics that a query delivers to: those of its classes, and lab.<output> if it is read."""
    if not isinstance(run, QueryRun):
        return frozenset()
    return frozenset(topic for output in run.outputs for topic in output.topics)


def lacking(wanted: Run | None, main: Run | None) -> frozenset[str]:
    """The topics that only a side run can feed now.

    `main` is the run whose query runs or is being started; None where the next start takes what is
    wanted. A stateful query gets no side run: its batches are short.
    """
    if wanted is main or not isinstance(wanted, QueryRun) or not isinstance(main, QueryRun):
        return frozenset()
    new = fed_by(wanted) - fed_by(main)
    if not new or is_stateful(wanted.plan) or main.plan != wanted.plan:
        return frozenset()
    return new


def side_run(wanted: Run | None, topics: Collection[str]) -> QueryRun | None:
    """The run that feeds those of these topics that are wanted; None for nothing."""
    if not isinstance(wanted, QueryRun) or fed_by(wanted).isdisjoint(topics):
        return None
    outputs = tuple(
        replace(
            each,
            classes=tuple(cls for cls in each.classes if cls.topic in topics),
            labelled=each.labelled and each.relation.topic in topics,
        )
        for each in wanted.outputs
        if not each.topics.isdisjoint(topics)
    )
    return replace(wanted, name=side_name(wanted.name), outputs=outputs)


def feeds(main: Run | None, side: QueryRun) -> bool:
    """Whether the main run feeds all topics of the side run."""
    return fed_by(main) >= fed_by(side)


def has_caught_up(reached: Offsets, began: Offsets) -> bool:
    """Whether all before `began`, where the main run began, is before `reached`."""
    return all(
        reached.get(topic, {}).get(partition, EARLIEST) >= offset
        for topic, partitions in began.items()
        for partition, offset in partitions.items()
    )


def feed_all(wanted: Run | None, main: Run | None, side: Run | None) -> bool:
    """Whether the wanted topics get all that they should of these two runs, which run."""
    if not isinstance(wanted, QueryRun) or not isinstance(main, QueryRun):
        return False
    if not isinstance(side, QueryRun):
        return False
    if not _meaning(main) == _meaning(side) == _meaning(wanted):
        return False
    if not fed_by(wanted) <= fed_by(main) | fed_by(side):
        return False
    return {*wanted.classes} <= {*main.classes, *side.classes}


def _meaning(run: QueryRun) -> tuple[object, ...]:
    """What decides which results there are, and what their labels are."""
    return run.plan, run.sources, dict(run.reaches)
