"""A group of ingest under supervision with its side run, which ingests the group's new senders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.runs import RunReport
from secfilter.newcomers import newcomers, senders_of, topics_read
from secfilter.supervised import Means
from secfilter.with_side import Starts, WithSide


class IngestWithSide(WithSide):
    """The side run ends when the main run's batch has ended; only then the main run starts again.

    Each sender's topic is read by one of both at most. So the main run does not start while there
    is a side run, and the side run does not begin unless the main run runs.
    """

    def __init__(self, name: str, means: Means, starts: Starts) -> None:
        def has_room() -> bool:
            return self._side is None and means.has_room()

        # The main run waits for the end of the side run's batch, and so for no longer than that.
        short = means.pace.of_ingest_side()
        main_means = replace(means, has_room=has_room)
        super().__init__(name, replace(means, pace=short), main_means, starts)

    def _keep_side(self) -> None:
        run = None
        if self._main.began is not None and self._lacks_any():
            held = topics_read(self._main.doing) | frozenset(self._kept.held(self.name))
            run = newcomers(self._wanted, held)
        self._step_side(run)

    def _lacks_any(self) -> bool:
        return not topics_read(self._wanted) <= topics_read(self._main.doing)

    def _do_all(self) -> bool:
        side = None if self._side is None else self._side.doing
        return senders_of(self._main.doing) | senders_of(side) == senders_of(self._wanted)

    def _counted_beside(self, report: RunReport) -> Mapping[str, int]:
        return report.counted
