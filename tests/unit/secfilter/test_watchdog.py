"""An engine that hangs, or does not reach the catalog, ends itself."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from secfilter.watchdog import EXIT_CODE, GRACE_S, Watchdog

# Its loop hangs; and so that nothing of it works on, Spark's process must end with it.
_ENGINE = """
import subprocess, sys, threading
from secfilter.watchdog import Watchdog, end_at_once
nothing = subprocess.DEVNULL
spark = subprocess.Popen(["sleep", "1000"], stdout=nothing, stderr=nothing)
stop = threading.Event()
print(spark.pid, flush=True)
Watchdog(1.0, lambda hangs: end_at_once(spark, hangs=hangs)).watch(stop)
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

    def __post_init__(self) -> None:
        self.watchdog = Watchdog(60.0, self.bites.append, lambda: self.now)

    def watch(self, seconds: float) -> bool:
        """Look every second; whether it bit."""
        bites = [self.look(1.0) for _ in range(int(seconds))]
        return any(bites)

    def look(self, after: float) -> bool:
        self.now += after
        return self.watchdog.look()


def test_it_bites_only_when_the_catalog_was_not_reached_for_too_long() -> None:
    dog = Dog()
    assert not dog.watch(60)
    dog.watchdog.note_reached()
    assert not dog.watch(60)
    assert dog.watch(1) and dog.bites == [True], "its loop stands still, too"


def test_it_tells_a_hanging_engine_from_a_catalog_that_is_away() -> None:
    dog = Dog()
    for _ in range(60):
        dog.watchdog.note_turn()
        assert not dog.watch(1)
    assert dog.watch(1) and dog.bites == [False]


def test_a_process_that_stood_still_may_reach_the_catalog_first() -> None:
    dog = Dog()
    assert not dog.look(1_000) and not dog.watch(GRACE_S)
    dog.watchdog.note_reached()
    assert not dog.watch(60)
    assert not dog.look(1_000)
    assert dog.watch(GRACE_S + 1)
