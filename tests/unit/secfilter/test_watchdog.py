"""An engine that hangs, or does not reach the catalog, ends itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from secfilter.watchdog import EXIT_CODE, HANGS_S, Watchdog

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


def test_it_bites_only_when_nothing_was_noted_for_too_long() -> None:
    now, bites = [0.0], list[bool]()
    dog = Watchdog(60.0, bites.append, lambda: now[0])
    for now[0] in (30.0, 60.0):
        assert not dog.look()
    dog.note_reached()
    now[0] = 120.0
    assert not dog.look() and bites == []
    now[0] = 120.5
    assert dog.look() and bites == [True], "its loop stands still, too"
    dog.note_turn()
    now[0] = 120.5 + HANGS_S
    assert dog.look() and bites == [True, False], "only the catalog is away"
