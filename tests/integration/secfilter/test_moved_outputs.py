"""Two equal queries that keep state, in the real broker: the later one's output moves over.

Each window's result is compared with that of the query that ran alone from the beginning.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread

import pytest

from catalog.plan import Aggregation, Source, Window
from catalog.runs import IngestRun, IngestStream, QueryRun
from catalog.topics import lab_topic
from tests.integration.secfilter.plane import Plane, headers, tuple_at, values
from tests.integration.secfilter.running import Notes, running
from tests.integration.secfilter.test_ticks import _ALL, by_broker, now
from tests.plans import grouped

pytestmark = pytest.mark.long
Until = Callable[[Callable[[], bool]], None]
_COUNT = (Aggregation("n", "count", None),)


@contextmanager
def fed(plane: Plane, stream: IngestStream) -> Iterator[None]:
    """Tuples come all the time."""
    stop = Event()

    def send() -> None:
        while not stop.wait(0.1):
            plane.send(stream, tuple_at(now()))

    thread = Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@dataclass
class Two:
    """A query, and later an equal one of somebody else."""

    plane: Plane
    notes: Notes
    stream: IngestStream
    window: Window
    first: QueryRun
    until: Until

    def second(self) -> QueryRun:
        """The later query, which begins now."""
        made = counting(self.plane, self.stream, self.window)
        topic = lab_topic(self.stream.relation.name)
        ends = self.plane.engine_of("query").positions.ends([topic])[topic]
        begins = {topic: {str(partition): end for partition, end in ends.items()}}
        return replace(
            made, starting_offsets=begins, outputs=(replace(made.outputs[0], begins=begins),)
        )

    def want(self, *runs: QueryRun) -> None:
        """Wait until these run as they are wanted."""
        self.notes.wanted = runs
        self.until(lambda: all(map(self.notes.feeds, runs)))

    def crash(self, run: QueryRun) -> None:
        """End the run's query inside its batch, and wait until it goes on."""
        spark = self.plane.engine.spark
        before = [each for each in spark.streams.active if each.name == run.name]
        for each in before:
            each.stop()

        def again() -> bool:
            ids = {each.runId for each in spark.streams.active if each.name == run.name}
            return bool(ids - {each.runId for each in before}) and self.notes.feeds(run)

        self.until(again)

    def results(self, run: QueryRun) -> dict[object, Counter[tuple[bytes, str]]]:
        """Window -> its results with their ids, each with how often it came."""
        found: dict[object, Counter[tuple[bytes, str]]] = {}
        messages = self.plane.read(run.classes[0].topic, 0)
        for message, value in zip(messages, values(messages), strict=True):
            own = found.setdefault(value["window_start"], Counter())
            own[message.value() or b"", dict(headers(message))["id"]] += 1
        return found

    def compare(self, second: QueryRun, *, since: object, repeats: bool) -> None:
        """From that window on both have the same results, and no window is missing."""
        alone, moved = self.results(self.first), self.results(second)
        # The end of the test may break off a batch that gives one of them a window more.
        last = min(max(map(str, alone)), max(map(str, moved)))
        windows = [each for each in sorted(alone, key=str) if str(since) <= str(each) <= last]
        assert len(windows) > 2
        for each in windows:
            ((value, one),) = alone[each]
            ((other_value, other),) = moved[each]
            assert value == other_value and one != other
            assert repeats or moved[each].total() == 1, "each result comes one way"

    def closed(self, run: QueryRun, count: int) -> list[object]:
        """Wait until so many more windows have results; all that have one."""
        before = len(self.results(run))
        self.until(lambda: len(self.results(run)) >= before + count)
        return sorted(self.results(run), key=str)


def counting(plane: Plane, stream: IngestStream, window: Window) -> QueryRun:
    return plane.query(grouped(Source(stream.relation), window, (), _COUNT), _ALL)


@contextmanager
def two_of(plane: Plane, window_ms: int, until: Until) -> Iterator[Two]:
    """The first query runs, and tuples come."""
    stream = by_broker(plane.stream(0, partitions=2))
    window = Window(window_ms, window_ms)
    first = counting(plane, stream, window)
    plane.start(IngestRun(f"ingest-{stream.relation.name}", (stream,)))
    with running(plane.engine_of("query"), to_the_end=False) as notes:
        two = Two(plane, notes, stream, window, first, until)
        with fed(plane, stream):
            two.want(first)
            yield two


def in_ms(seconds: float) -> int:
    return round((time.time() + seconds) * 1_000)


@pytest.mark.parametrize("crashes", [False, True])
def test_each_result_of_an_output_that_moves_comes_one_way(
    plane: Plane, until: Until, crashes: bool
) -> None:
    with two_of(plane, 1_000, until) as two:
        two.closed(two.first, 1)
        second = two.second()
        two.want(two.first, second)
        # Its first window is not whole.
        first_own = two.closed(second, 3)[1]
        turn_ms = in_ms(40 if crashes else 15)
        (own,) = second.outputs
        later = replace(own, after_ms=turn_ms, moves=True)
        both = replace(two.first, outputs=(*two.first.outputs, later))
        two.want(both, second)
        if crashes:
            two.crash(both)
            two.crash(second)
        turning = replace(second, outputs=(replace(own, until_ms=turn_ms, moves=True),))
        two.want(both, turning)
        if crashes:
            two.crash(both)
            two.crash(turning)
        assert in_ms(0) < turn_ms, "the test was too slow"
        until(lambda: two.notes.said[second.name].delivered_ms == turn_ms)
        moved = replace(both, outputs=(*two.first.outputs, replace(later, moves=False)))
        two.want(moved)
        if crashes:
            two.crash(moved)
        two.closed(second, 3)
    two.compare(second, since=first_own, repeats=crashes)


def test_a_stop_copies_the_state(plane: Plane, until: Until) -> None:
    """A window that is open at the stop has all its tuples, whenever the query is started again."""
    with two_of(plane, 4_000, until) as two:
        other = two.second()
        both = replace(two.first, outputs=(*two.first.outputs, *other.outputs))
        two.want(both)
        since = two.closed(two.first, 2)[-1]
        until(lambda: since in two.results(other))
        # Started again at once: the run that it left may not have made the copy yet.
        copy = replace(other, name=f"{other.name}1", copied_from=both.name)
        left = replace(two.first, copies=(copy.name,))
        two.want(left, copy)
        two.closed(other, 2)
        # What is left now does not run when the copy is needed.
        two.notes.wanted = ()
        until(lambda: all(said.state == "stopped" for said in two.notes.said.values()))
        last = replace(other, name=f"{other.name}2", copied_from=copy.name)
        two.want(two.first, last)
        end = two.closed(two.first, 2)[-1]
        until(lambda: end in two.results(other))
    two.compare(other, since=since, repeats=False)
