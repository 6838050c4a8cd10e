"""An engine that hangs, or does not reach the catalog, ends itself."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from threading import Event

import pytest

from secfilter.watchdog import EXIT_CODE, GRACE_S, HANGS_S, Watchdog

# Its loop hangs; and so that nothing of it works on, Spark's process must end with it.
_ENGINE = """
import subprocess, sys, threading
from secfilter.watchdog import Watchdog, end_at_once
nothing = subprocess.DEVNULL
spark = subprocess.Popen(["sleep", "1000"], stdout=nothing, stderr=nothing)
stop, over = threading.Event(), threading.Event()
print(spark.pid, flush=True)
Watchdog(1.0, lambda hangs: end_at_once(spark, hangs=hangs)).watch(stop, over)
if sys.argv[1] == "stopping":
    stop.set()
threading.Event().wait(60 if sys.argv[1] == "hanging" else 3)
"""


@pytest.mark.parametrize(("doing", "code"), [("hanging", EXIT_CODE), ("stopping", 0)])
def test_what_hangs_ends_with_its_spark(doing: str, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _ENGINE, doing], capture_output=True, timeout=50, check=False
    )
    assert ended.returncode == code
    spark = int(ended.stdout)
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(spark)], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert (state == "" or state.startswith("Z")) == (doing == "hanging")
    if doing == "stopping":
        subprocess.run(["kill", str(spark)], check=True)


@dataclass
class Dog:
    """A watchdog with hands on its clock; `bites` are whether the engine hung."""

    now: float = 0.0
    bites: list[bool] = field(default_factory=list)
    signs: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watchdog = Watchdog(
            *(60.0, self.bites.append, lambda: self.now, lambda: self.signs.append(self.now))
        )

    def watch(self, seconds: float) -> bool:
        """Look every second; whether it bit."""
        bites = [self.look(1.0) for _ in range(int(seconds))]
        return any(bites)

    def look(self, after: float) -> bool:
        self.now += after
        return self.watchdog.look()


def test_it_bites_when_the_catalog_was_not_reached_for_too_long() -> None:
    dog = Dog()
    for _ in range(60):
        dog.watchdog.note_turn()
        assert not dog.watch(1)
    assert dog.watch(1) and dog.bites == [False], "its loop turns all the time"


def test_it_bites_when_the_loop_hangs_and_only_then() -> None:
    dog = Dog()
    for _ in range(10):
        dog.watchdog.note_turn()
        dog.watchdog.note_reached()
        assert not dog.watch(HANGS_S)
    assert dog.watch(1) and dog.bites == [True]


def test_signs_are_given_while_nothing_is_wrong() -> None:
    dog = Dog()
    assert not dog.watch(HANGS_S)
    assert dog.signs == [*range(1, int(HANGS_S) + 1)], "one at each look, whatever the loop does"
    assert dog.watch(1)
    assert len(dog.signs) == HANGS_S


def test_a_process_that_stood_still_may_go_on_first() -> None:
    dog = Dog()
    assert not dog.look(1_000) and not dog.watch(GRACE_S)
    dog.watchdog.note_reached()
    dog.watchdog.note_turn()
    assert not dog.watch(HANGS_S)
    assert not dog.look(1_000)
    assert dog.watch(GRACE_S + 1)


@pytest.mark.parametrize("turns", [True, False])
def test_what_ends_in_order_gives_signs_while_its_loop_turns(turns: bool) -> None:
    """It need not reach the catalog, and it may wait for the end of a batch for long."""
    stop, over, now = Event(), Event(), [0.0]
    bites, signs = list[bool](), list[float]()
    watchdog = Watchdog(1.0, bites.append, lambda: now[0], lambda: signs.append(now[0]))
    stop.set()
    now[0] = 1_000.0
    if turns:
        watchdog.note_turn()
    watchdog.watch(stop, over)
    time.sleep(0.5)
    over.set()
    assert not bites
    assert bool(signs) == turns
