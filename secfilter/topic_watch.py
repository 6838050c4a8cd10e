"""Looks at the topics of the wanted runs every few seconds, in its own thread."""

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
    """Finds topics that are faulty in Kafka.

    A topic is faulty if two looks in a row find so, because the first look may be older than the
    topic. While Kafka does not answer, the last result holds.
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
        """Note topics that were deleted and made again, so that they have other records."""
        with self._lock:
            self._anew.update(topics)

    def faults(self, runs: Sequence[Run]) -> Faults:
        """The faults of topics of the runs that were found last. It never waits."""
        if self._looking is not None and self._looking.done:
            self._judge(runs, self._looking)
            self._looking = None
        if self._looking is None and self._clock() >= self._next:
            self._next = self._clock() + _EVERY_S
            self._looking = Task(self._partitions)
            self._begin("look at topics", self._looking)
        with self._lock:
            if self._anew:
                # A later object with this name has its own topic.
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
