"""The supervisor of a platform in the background: `python -m deploy.supervisor --state DIR`.

It starts again what died, and ends an engine that hangs. While SecAdmin is away nobody can take a
right away, so it waits for nothing: not until what it has started serves, and for the deployment's
lock not either. `up` and `down` hold that lock while they work, and `down` ends the supervisor
first.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deploy.class_archive import ArchiveMaker
from deploy.errors import DeployError
from deploy.files import try_file_lock
from deploy.processes import ManagedProcess
from deploy.runtime import ensure_runtime
from deploy.spare import SpareKeeper
from deploy.stack import Stack, StackOptions

log = logging.getLogger("supervisor")

POLL_S = 0.25
# What dies again sooner than this is left alone for a while, each time for twice as long.
SETTLED_S = 60.0
# An engine says each second that it goes on, in a thread that waits for nothing. If only its loop
# hangs, it ends itself (`secfilter.watchdog`).
HUNG_S = 10.0
# Who did not look for so long does not know whether an engine goes on.
GAP_S = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


@dataclass
class Part:
    """A part of the platform that is to run; `launch` starts it and does not wait until it serves.

    `sign` is a text that changes while the part goes on, empty until it is ready. Times are those
    of the supervisor's clock, in seconds. `resume` gives a part that has ended another process, if
    it has asked for one, and says whether it did.
    """

    process: ManagedProcess
    launch: Callable[[], None]
    launched: float | None = None
    pause_s: float = 0.0
    sign: Callable[[], str] = lambda: ""
    seen: str = ""
    changed: float = 0.0
    looked: float = 0.0
    resume: Callable[[], bool] = lambda: False

    def hangs(self, now: float) -> bool:
        """Whether it was looked at for too long, and has said the same all the time."""
        sign = self.sign()
        if sign != self.seen or not sign or now - self.looked > GAP_S:
            self.seen, self.changed = sign, now
        self.looked = now
        return now - self.changed > HUNG_S

    def is_due(self, now: float) -> bool:
        """Whether it is to be started again, now that it does not run."""
        return self.launched is None or now >= self.launched + self.pause_s

    def start(self, now: float) -> None:
        """Start it again. Raises DeployError; the next attempt comes after a pause."""
        died_soon = self.launched is not None and now < self.launched + SETTLED_S
        longer = min(max(2 * self.pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self.pause_s = longer if died_soon else FIRST_PAUSE_S
        self.launched = now
        self.launch()


class Supervisor:
    """Starts parts again that have died; `tick` is to be called every `POLL_S` seconds."""

    def __init__(
        self, lock: Path, parts: Iterable[Part], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`lock` is the deployment's, which is held by whoever starts or stops parts."""
        self._lock = lock
        self._parts = list(parts)
        self._clock = clock

    @classmethod
    def of(cls, stack: Stack, spare: SpareKeeper) -> Supervisor:
        """The supervisor of the stack's parts; first comes what takes rights away."""
        broker = stack.broker
        parts = [Part(stack.secadmin, stack.launch_secadmin)]
        if broker is not None:
            parts.append(Part(broker.process, broker.relaunch))
        parts += [
            Part(
                process,
                partial(spare.launch, name),
                sign=partial(stack.engine_sign, name),
                resume=partial(spare.give_if_asked, name),
            )
            for name, process in stack.engines.items()
        ]
        return cls(stack.lock, parts)

    def tick(self) -> None:
        """Start again what has died, unless somebody else is starting or stopping parts."""
        _reap()
        self._end_hung()
        if all(part.process.mark is not None for part in self._parts):
            return
        with try_file_lock(self._lock) as held:
            if held:
                self._start_dead()

    def _end_hung(self) -> None:
        now = self._clock()
        for part in self._parts:
            if part.hangs(now) and part.process.mark is not None:
                log.error("%s hangs: ending it", part.process.name)
                part.process.kill_all()
                part.changed = now

    def _start_dead(self) -> None:
        now = self._clock()
        for part in self._parts:
            if part.process.mark is not None:
                continue
            try:
                if part.resume() or not part.is_due(now):
                    continue
                log.warning("%s does not run: starting it again", part.process.name)
                part.start(now)
            except (DeployError, OSError) as failure:
                log.error("%s: %s", part.process.name, failure)


def _reap() -> None:
    """Let our children that have ended go, so that no zombie is left of them."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(arguments: list[str]) -> int:
    """Watch the platform of a state folder until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m deploy.supervisor", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the deployment's folder")
    parser.add_argument("--settings", type=Path, help="of an existing Kafka: no broker is started")
    parser.add_argument("--broker-heap", type=int, required=True, help="in MB")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    options = StackOptions(
        state=given.state,
        settings=given.settings,
        broker_heap_mb=given.broker_heap,
        detached=True,
    )
    runtime = ensure_runtime()
    stack = Stack(options, runtime)
    spare = SpareKeeper(stack)
    supervisor = Supervisor.of(stack, spare)
    archive = ArchiveMaker(stack.state, runtime.java, runtime.jars.connector)
    log.info("watching %s", given.state)
    # Where the folder is gone, there is nothing left to run.
    while stack.settings_file.exists() and not over.wait(POLL_S):
        supervisor.tick()
        archive.tick()
        spare.tick()
    archive.stop()
    spare.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
