"""What a side run delivers beside the main run of a query, and when it has done so.

A stateless query is planned anew only at the end of its batch, which may last a minute. Until then
a side run feeds the classes that the query does not feed yet: the same plan over the same topics,
from their ends on, in short batches. From where the main run begins with these classes, it delivers
to them itself. So the side run has done its work when it has delivered all that comes before. What
both deliver has the same id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from catalog.plan import is_stateful
from catalog.runs import QueryRun, Run
from secfilter.kafka_options import EARLIEST, Offsets


def side_name(run: str) -> str:
    """The name of the side run of that run; no other run has it."""
    return f"{run}-side"


def lacking(wanted: Run | None, main: Run | None) -> frozenset[str]:
    """The topics of the classes that only a side run can feed now.

    `main` is the run whose query runs or is being started; None where the next start takes what is
    wanted. A stateful query gets no side run: its batches are short.
    """
    if not isinstance(wanted, QueryRun) or not isinstance(main, QueryRun):
        return frozenset()
    new = {each.topic for each in wanted.classes} - {each.topic for each in main.classes}
    if not new or is_stateful(wanted.plan) or main.plan != wanted.plan:
        return frozenset()
    return frozenset(new)


def side_run(wanted: Run | None, topics: Collection[str]) -> QueryRun | None:
    """The run that feeds the wanted classes with these topics; None for nothing.

    It does not write lab.<output>, which the main run alone writes.
    """
    if not isinstance(wanted, QueryRun):
        return None
    classes = tuple(each for each in wanted.classes if each.topic in topics)
    if not classes:
        return None
    return replace(wanted, name=side_name(wanted.name), classes=classes, labelled=False)


def feeds(main: Run | None, side: QueryRun) -> bool:
    """Whether the main run feeds all classes of the side run."""
    own = {each.topic for each in main.classes} if isinstance(main, QueryRun) else set()
    return own >= {each.topic for each in side.classes}


def has_caught_up(reached: Offsets, began: Offsets) -> bool:
    """Whether all before `began`, where the main run began, is before `reached`."""
    return all(
        reached.get(topic, {}).get(partition, EARLIEST) >= offset
        for topic, partitions in began.items()
        for partition, offset in partitions.items()
    )


def feed_all(wanted: Run | None, main: Run | None, side: Run | None) -> bool:
    """Whether the wanted classes get all that they should of these two runs, which run."""
    if not isinstance(wanted, QueryRun) or not isinstance(main, QueryRun):
        return False
    if not isinstance(side, QueryRun):
        return False
    if not _meaning(main) == _meaning(side) == _meaning(wanted):
        return False
    return {*wanted.classes} <= {*main.classes, *side.classes}


def _meaning(run: QueryRun) -> tuple[object, ...]:
    """What decides which results there are, and what their labels are."""
    return run.plan, run.output, run.sources, dict(run.reaches)
