"""No run begins in place of another while a lost executor of it may still run."""

from __future__ import annotations

from collections.abc import Set

from secfilter.cluster import GONE_S
from secfilter.lost_executors import FORSAKEN_S, Forsaken, LostExecutors

SEEN, CUT_OFF = "Command exited with code 137", "Executor heartbeat timed out after 20000 ms"


class World:
    """A clock that goes on only while somebody waits, and what Spark has removed."""

    def __init__(self, since: float = -GONE_S) -> None:
        self.now = 0.0
        self.removed: dict[str, str] = {}
        self.later: dict[float, tuple[str, str]] = {}
        self.lost = LostExecutors(self._removed, since, lambda: self.now, self._pause)

    def _removed(self, known: Set[str]) -> dict[str, str]:
        for at in [at for at in self.later if at <= self.now]:
            executor, reason = self.later.pop(at)
            self.removed[executor] = reason
        return {executor: self.removed[executor] for executor in self.removed.keys() - known}

    def _pause(self, seconds: float) -> None:
        self.now += seconds

    def waited(self) -> float:
        """How long `await_end` waits now."""
        before = self.now
        self.lost.await_end()
        return self.now - before


def test_without_a_loss_nobody_waits() -> None:
    assert World().waited() == 0


def test_one_whose_end_was_seen_is_not_waited_for() -> None:
    world = World()
    world.removed["0"] = SEEN
    assert world.waited() == 0


def test_one_that_may_still_run_is_waited_for_once() -> None:
    world = World()
    world.removed["0"] = CUT_OFF
    assert GONE_S <= world.waited() < GONE_S + 1
    assert world.waited() == 0


def test_the_time_counts_from_when_the_loss_was_seen() -> None:
    world = World()
    world.removed["0"] = CUT_OFF
    world.lost.look()
    world.now += GONE_S - 2
    assert 2 <= world.waited() < 3


def test_a_second_loss_is_waited_for_too() -> None:
    world = World()
    world.removed["0"] = CUT_OFF
    world.later[5.0] = ("1", "worker lost")
    assert 5 + GONE_S <= world.waited() < 6 + GONE_S


def test_those_of_the_last_process_are_waited_for() -> None:
    assert 4 <= World(since=4.0 - GONE_S).waited() < 5


def test_a_look_that_fails_is_tried_again() -> None:
    world, turns = World(), iter([True, True, True, False])
    fails = iter([True, False, False])

    def removed(known: Set[str]) -> dict[str, str]:
        if next(fails, False):
            raise OSError
        return {} if known else {"0": CUT_OFF}

    lost = LostExecutors(removed, -GONE_S, lambda: world.now, world._pause)
    lost.keep_up(lambda: next(turns))
    before = world.now
    lost.await_end()
    # Noted in the second look, a second before the last one.
    assert GONE_S - 2.5 <= world.now - before <= GONE_S


def test_an_engine_without_executors_is_forsaken_after_a_minute() -> None:
    now, count = [0.0], [0]
    forsaken = Forsaken(lambda: count[0], lambda: now[0])
    now[0] = FORSAKEN_S
    assert not forsaken.is_so(), "it is still waiting for its first one"
    now[0] += 1
    assert forsaken.is_so()
    count[0] = 1
    assert not forsaken.is_so()
    count[0], now[0] = 0, now[0] + FORSAKEN_S
    assert not forsaken.is_so(), "it had one a minute ago"
