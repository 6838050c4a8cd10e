"""Keeps a spare engine beside a platform, and gives it to the engine that asks (`secfilter.spare`).

So an engine that has died is back without a start of Spark. One spare serves all engines for
queries: of two that need Spark at the same time, the second one starts its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from deploy.errors import DeployError
from deploy.stack import Stack
from secfilter.spare import Given, asking_file, give

log = logging.getLogger("spare engine")

# A spare takes both cores while it starts. So it waits until nothing was started for so long.
QUIET_S = 120.0


class SpareKeeper:
    """Starts a spare, and another one when that is used up or has died.

    It begins `QUIET_S` seconds from now. `clock` gives seconds.
    """

    def __init__(self, stack: Stack, clock: Callable[[], float] = time.monotonic) -> None:
        self._stack = stack
        self._clock = clock
        own = stack.settings.secfilter
        # On a Spark cluster the tasks are elsewhere, and a driver alone is not warm.
        self._keeps = own.spare and own.cluster is None
        self._due = clock() + QUIET_S
        # A supervisor that was killed has left it.
        self.stop()

    def tick(self) -> None:
        """Start a spare, if there is none and it is time."""
        if not self._keeps or self._clock() < self._due or self._stack.spare.mark is not None:
            return
        self._due = self._clock() + QUIET_S
        try:
            self._stack.launch_spare()
        except DeployError as failure:
            log.error("%s", failure)

    def launch(self, engine: str) -> None:
        """Start that engine. It asks for the spare when it needs Spark."""
        self._due = self._clock() + QUIET_S
        self._stack.launch_engine(engine, asks=True)

    def give_if_asked(self, engine: str) -> bool:
        """Let the spare take the place of the engine, which has ended; False if it did not ask."""
        asks = asking_file(self._stack.ready_file(engine))
        if not asks.exists():
            return False
        asks.unlink()
        spare, file = self._stack.spare, self._stack.spare_file
        if spare.mark is None or not file.exists():
            file.unlink(missing_ok=True)
            return False
        given = Given(engine, str(self._stack.ready_file(engine)))
        self._stack.engines[engine].become(spare, lambda: give(file, given))
        self._due = self._clock() + QUIET_S
        log.info("the spare is the engine %s now", engine)
        return True

    def stop(self) -> None:
        """End the spare. It has nothing to lose."""
        self._stack.spare.kill_all()
        self._stack.spare.kill()
        self._stack.spare_file.unlink(missing_ok=True)
