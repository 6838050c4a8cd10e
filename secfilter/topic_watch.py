"""Looks at the topics of what should run, every few seconds, beside everything else."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from catalog.errors import Unavailable
from catalog.runs import Run, topics_of
from secfilter.background import Begin, Task, in_thread
from secfilter.topic_faults import ANEW, Faults, faults_in

_EVERY_S = 2.0
_log = logging.getLogger(__name__)


class TopicWatch:
    """What is wrong with topics, by what Kafka says of them.

    A topic is at fault once two looks in a row say so: the first may be older than the topic. While
    Kafka does not answer, what was found last holds.
    """

    def __init__(
        self,
        partitions: Callable[[], Mapping[str, int]],
        clock: Callable[[], float] = time.monotonic,
        begin: Begin = in_thread,
    ) -> None:
        """`partitions` asks Kafka for the number of partitions of each topic."""
        self._partitions = partitions
        self._clock = clock
        self._begin = begin
        self._lock = Lock()
        self._anew: set[str] = set()
        self._looking: Task[Mapping[str, int]] | None = None
        self._next = clock()
        self._suspected: Faults = {}
        self._faults: Faults = {}

    def note_anew(self, topics: Sequence[str]) -> None:
        """Keep in mind topics whose records are not those that were read before."""
        with self._lock:
            self._anew.update(topics)

    def faults(self, runs: Sequence[Run]) -> Faults:
        """What is wrong with topics of the runs, as was found last; never waits."""
        if self._looking is not None and self._looking.done:
            self._judge(runs, self._looking)
            self._looking = None
        if self._looking is None and self._clock() >= self._next:
            self._next = self._clock() + _EVERY_S
            self._looking = Task(self._partitions)
            self._begin("look at topics", self._looking)
        with self._lock:
            if self._anew:
                # Who has the name next has a topic of its own.
                self._anew &= {topic for run in runs for topic in topics_of(run)}
            return {**self._faults, **dict.fromkeys(self._anew, ANEW)}

    def _judge(self, runs: Sequence[Run], look: Task[Mapping[str, int]]) -> None:
        try:
            found = faults_in(runs, look.result())
        except Unavailable as error:
            _log.warning("topics could not be looked at: %s", error.detail)
            return
        self._faults = {topic: why for topic, why in found.items() if topic in self._suspected}
        self._suspected = found
