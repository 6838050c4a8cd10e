"""The engine for probation: without Spark until there is work, and again when that is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from catalog.errors import Unavailable
from secfilter.life import READY_FILE, Life, Signs
from secfilter.waiting import (
    IDLE_S,
    TRIAL_STARTS_S,
    WORK_S,
    EndWhenIdle,
    await_work,
    let_trial_start,
)

BEAT_S = 2.0
LOOKS = round(BEAT_S / WORK_S)


@dataclass
class Bench:
    """A catalog and a clock: `answers` are whether there is work, or that nobody knows."""

    answers: list[bool | Exception]
    wanted: list[str] = field(default_factory=list)
    now: float = 0.0
    beats: int = 0
    turns: int = 0
    done: list[str] = field(default_factory=list)
    ends: bool = False

    def awaits_trial(self) -> bool:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def trial_starts(self) -> bool:
        return self.awaits_trial()

    def runs(self) -> list[str]:
        return self.wanted

    def applied(self) -> None:
        self.done.append("applied")

    def beat(self) -> None:
        self.beats += 1

    def turned(self) -> None:
        self.turns += 1

    def is_set(self) -> bool:
        return self.ends

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return self.ends


AWAY = Unavailable("the database is away")


def test_it_says_that_it_is_alive_until_there_is_work() -> None:
    bench = Bench([*[False] * (2 * LOOKS), AWAY, False, True])
    await_work(bench, bench, BEAT_S)  # type: ignore[arg-type]  # as much of an event as it needs
    assert (bench.beats, bench.now) == (2, (2 * LOOKS + 2) * WORK_S), "it looks often"
    assert bench.done == ["applied"] * 2, "others wait until it has seen each change"


def test_it_ends_while_it_waits() -> None:
    bench = Bench([False], ends=True)
    await_work(bench, bench, BEAT_S)  # type: ignore[arg-type]
    assert bench.beats == 0


def test_what_is_on_trial_starts_first() -> None:
    bench = Bench([*[True] * (2 * LOOKS), AWAY, False])
    let_trial_start(bench, bench, BEAT_S, lambda: bench.now)  # type: ignore[arg-type]
    assert bench.now == (2 * LOOKS + 1) * WORK_S
    assert bench.beats == 2


def test_who_has_work_waits_for_no_trial() -> None:
    bench = Bench([True], wanted=["query.1"])
    let_trial_start(bench, bench, BEAT_S, lambda: bench.now)  # type: ignore[arg-type]
    assert bench.now == 0.0


def test_no_trial_is_waited_for_for_ever() -> None:
    bench = Bench([True])
    let_trial_start(bench, bench, BEAT_S, lambda: bench.now)  # type: ignore[arg-type]
    assert bench.now == TRIAL_STARTS_S


def test_what_is_wanted_meanwhile_is_not_said_to_be_applied() -> None:
    bench = Bench([*[False] * LOOKS, True], wanted=["query.1"])
    await_work(bench, bench, BEAT_S)  # type: ignore[arg-type]
    assert bench.beats == 1 and not bench.done


def test_it_gives_spark_up_after_a_while_without_work() -> None:
    bench = Bench([*[True] * 20, *[AWAY] * 20, False])
    idle = EndWhenIdle(bench, bench, lambda: bench.now)  # type: ignore[arg-type]
    while not idle.wait(1.0):
        assert bench.now < 1_000
    assert bench.now == 40 + IDLE_S
    bench.ends = True
    assert EndWhenIdle(bench, bench, lambda: bench.now).wait(1.0)  # type: ignore[arg-type]


def test_a_process_that_did_not_end_in_order_has_died(tmp_path: Path) -> None:
    assert not Life(tmp_path).has_died(), "there was none"
    Life(tmp_path).begin()
    assert Life(tmp_path).has_died()
    Life(tmp_path).end()
    assert not Life(tmp_path).has_died()


def test_what_it_tells_changes_while_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    monkeypatch.setenv(READY_FILE, str(ready))
    signs = Signs()
    signs.give()
    assert not ready.exists(), "it is not ready yet"
    signs.ready()
    assert ready.stat().st_mode & 0o077 == 0
    said = [ready.read_text()]
    signs.ready()
    assert ready.read_text() == said[-1], "it was ready before"
    for _ in range(2):
        signs.give()
        said.append(ready.read_text())
    assert len(set(said)) == 3
    signs.starting()
    signs.give()
    assert not ready.exists()
    signs.ready()
    assert ready.read_text() not in said


def test_a_catalog_that_is_away_is_no_reason_to_give_no_sign() -> None:
    bench = Bench([AWAY, AWAY, True])
    await_work(bench, bench, BEAT_S)  # type: ignore[arg-type]
    assert (bench.turns, bench.beats) == (3, 0)
