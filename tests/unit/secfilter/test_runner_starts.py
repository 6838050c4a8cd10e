"""The runner starts what is wanted, and starts it anew when it has changed or failed."""

import logging
from collections.abc import Callable

import pytest

from catalog.errors import InvalidInput, Unavailable
from catalog.runs import IngestRun, fingerprint, topics_of
from secfilter.runner import LOOKS, POLL_S, STARTS_AT_ONCE
from secfilter.supervised import LONG_START_S
from tests.unit.secfilter.runner_bench import PACE, Bench, run_of


def test_wanted_runs_start_and_unwanted_ones_stop() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    assert sorted(bench.states) == sorted((n, s) for n in "ab" for s in ("starting", "running"))
    bench.wanted = (run_of("b"),)
    bench.step()
    bench.step()
    assert bench.told[-1] == ("a", "stopped", "")
    assert [q.killed for q in bench.queries] == [False, False]


def test_a_changed_run_restarts_at_its_batchs_end() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.queries[0].boundary = False
    bench.wanted = (run_of("a", 2),)
    bench.step()
    bench.step()
    assert bench.queries[0].asked and len(bench.queries) == 1
    bench.queries[0].boundary = True
    bench.step()
    assert len(bench.queries) == 2
    assert bench.marks["a"] == fingerprint(run_of("a", 2))


class Waits:
    """Lets time pass on a bench, and what is to happen meanwhile, until it is time to end."""

    def __init__(self, bench: Bench, seconds: float, meanwhile: Callable[[], None]) -> None:
        self._bench, self._until, self._meanwhile = bench, bench.now + seconds, meanwhile

    def wait(self, timeout: float) -> bool:
        self._bench.now += timeout
        self._meanwhile()
        return self._bench.now >= self._until


def test_what_ends_between_two_turns_is_followed_at_once() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.queries[0].boundary = False
    bench.wanted = (run_of("a", 2),)
    begin, asked = bench.now, bench.applications
    ended, followed = begin + 10 * POLL_S + 0.01, []

    def meanwhile() -> None:
        bench.queries[0].boundary = bench.now >= ended
        if len(bench.queries) == 2:
            followed.append(bench.now)

    bench.runner.run(Waits(bench, 20 * POLL_S, meanwhile))
    assert ended < followed[0] <= ended + 2 * POLL_S / LOOKS + 0.001
    assert bench.applications - asked <= 20, "the catalog is not asked more often"


def test_a_run_is_prepared_before_the_query_that_it_replaces_is_asked_to_end() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.wanted = (changed := run_of("a", 2),)
    bench.step()
    assert bench.prepared == [(changed, True)]
    assert bench.queries[0].asked
    bench.wanted = ()
    bench.step()
    assert len(bench.prepared) == 1, "what is not wanted needs nothing"


def test_what_changes_while_a_batch_ends_is_prepared_too() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.queries[0].boundary = False
    changes = [run_of("a", size) for size in (2, 3, 4)]
    for changed in changes:
        bench.wanted = (changed,)
        bench.step()
        bench.step()
    assert bench.prepared == [(changes[0], True), (changes[1], False), (changes[2], False)]
    assert len(bench.queries) == 1
    bench.queries[0].boundary = True
    bench.step()
    assert bench.queries[1].run == changes[2]


def test_a_run_that_has_settled_is_started_once_more_with_longer_batches() -> None:
    bench = Bench((run_of("a", 1),))
    bench.step()
    bench.step(100)
    bench.wanted = (run_of("a", 2),)
    bench.step()
    bench.step()
    assert [q.hurried for q in bench.queries] == [True, True]
    bench.step(PACE.settle_s("a") - 1)
    assert not bench.queries[-1].asked, "it counts from the change"
    bench.queries[-1].boundary = False
    bench.step(1)
    bench.step()
    assert bench.queries[-1].asked and len(bench.queries) == 2, "it ends with its batch"
    bench.queries[-1].boundary = True
    bench.step()
    assert [q.hurried for q in bench.queries] == [True, True, False]
    bench.step(1_000)
    assert len(bench.queries) == 3 and bench.told[-1][:2] == ("a", "running")
    bench.queries[-1].over, bench.queries[-1].error = True, ValueError()
    bench.step(2)
    bench.step(2)
    assert [q.hurried for q in bench.queries] == [True, True, False, False], "it has not changed"


def test_a_run_whose_batches_stay_as_they_are_goes_on_when_it_has_settled() -> None:
    bench = Bench((run_of("a"),), lengthens=False)
    bench.step()
    bench.step(1_000)
    assert len(bench.queries) == 1 and not bench.queries[0].asked


def test_crashes_are_answered_later_and_later_and_by_nobody_else() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    started = []
    for _ in range(6):
        failing = next(q for q in reversed(bench.queries) if q.run.name == "a")
        failing.over, failing.error = True, ValueError("secret value")
        count, began = len(bench.queries), bench.now
        while len(bench.queries) == count:
            bench.step()
        started.append(bench.now - began)
    assert started == sorted(started) and started[0] < 2 and 15 < started[-1] < 61
    assert ("a", "failed") in bench.states and ("a", "restarting") in bench.states
    assert not any("secret" in message for *_, message in bench.told)
    assert [q.run.name for q in bench.queries].count("b") == 1


def test_each_change_of_a_run_is_one_line_in_the_log_without_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lines() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    bench = Bench((run_of("a"),))
    with caplog.at_level(logging.INFO, "secfilter"):
        bench.step()
        assert lines() == ["a: running"]
        for _ in range(20):
            bench.step()
        assert lines() == [], "nothing has changed"
        bench.queries[0].over, bench.queries[0].error = True, ValueError("secret value")
        bench.step(2)
        assert lines() == ["a failed (1): ValueError", "a: restarting"]
        bench.step(2)
        assert lines()[-1] == "a: running"
        bench.wanted = ()
        bench.step()
        bench.step()
        assert lines() == ["a ends with its batch: it is no longer wanted", "a: stopped"]


def test_a_run_that_cannot_start_tells_why_and_starts_when_it_has_changed() -> None:
    bench = Bench((run_of("a"),), InvalidInput("rename it"))
    bench.step()
    assert bench.told[-1] == ("a", "restarting", "rename it")
    for _ in range(4):
        bench.step(100)
    assert bench.told[-1][1] == "failed"
    bench.refuse, bench.wanted = None, (run_of("a", 2),)
    bench.step()
    assert bench.told[-1][:2] == ("a", "running")


def test_each_call_of_the_catalog_that_ends_is_a_sign_that_it_goes_on() -> None:
    """Each may take long while the catalog is away; so the loop itself turns seldom."""
    bench = Bench(tuple(run_of(name) for name in "abc"), away=True)
    bench.step()
    assert bench.turns >= 1 + len("abc"), "what is wanted, and a report on each run"
    before = bench.turns
    bench.wanted = Unavailable("the database is away")
    bench.step()
    assert bench.turns > before


def test_while_the_catalog_is_away_everything_goes_on() -> None:
    bench = Bench((run_of("a"),))
    bench.step()
    bench.wanted = Unavailable("the database is away")
    bench.step(5)
    assert not bench.queries[0].asked
    assert bench.told[-1] == ("a", "running", "") and bench.counts == {"a late": 3}


def test_what_could_not_be_reported_is_reported_later() -> None:
    bench = Bench((run_of("b"),), away=True)
    bench.step()
    bench.wanted = (run_of("a"), run_of("b"))
    bench.step()
    bench.wanted = (run_of("a", 2), run_of("b"))
    bench.step()
    bench.step()
    other, first, second = bench.queries
    assert (first.asked, second.run) == (True, run_of("a", 2)), "what has changed starts anew"
    second.over, second.error = True, ValueError()
    bench.step(2)
    bench.step(2)
    *_, third = bench.queries
    assert third.run == second.run and third is not second, "a crash is answered all the same"
    assert not any(query.asked or query.killed for query in (other, third))
    assert (bench.told, bench.applications, bench.beats) == ([], 0, 0)
    bench.away = False
    bench.step(2)
    assert sorted(bench.told) == [("a", "running", ""), ("b", "running", "")]
    assert bench.counts == {"a late": 9, "b late": 3}, "what was withheld meanwhile is added"
    assert bench.marks["a"] == fingerprint(run_of("a", 2))
    assert bench.applications == 1


def test_a_start_that_hangs_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"),), slow=True)
    bench.step()
    assert bench.told == [("a", "starting", "")]
    hanging, bench.held, bench.slow = bench.held, [], False
    bench.wanted = (run_of("a"), run_of("b"))
    bench.step()
    assert ("b", "running", "") in bench.told
    bench.step(LONG_START_S)
    bench.step()
    assert ("a", "starting", "its start takes long") in bench.told
    bench.held = hanging
    bench.let_go()
    bench.step()
    assert bench.told[-1] == ("a", "running", "")


def test_so_many_start_at_once_but_none_waits_for_those_that_hang() -> None:
    bench = Bench([run_of(f"r{n}") for n in range(STARTS_AT_ONCE + 1)], slow=True)
    bench.step()
    assert len(bench.held) == STARTS_AT_ONCE
    bench.step(LONG_START_S + 1)
    assert len(bench.held) == STARTS_AT_ONCE + 1


def test_what_a_run_uses_is_told_before_it_starts() -> None:
    bench = Bench((run_of("a"),), slow=True, away=True)
    bench.step()
    assert bench.applications == 0
    bench.away = False
    bench.step()
    assert bench.used["a"] == topics_of(run_of("a")) and bench.applications == 1


def test_a_stream_whose_topic_is_broken_leaves_its_group_alone() -> None:
    bench = Bench((run_of("a", 1, "s1", "s2"), run_of("b", 1, "s3")))
    bench.step()
    group = next(query for query in bench.queries if query.run.name == "a")
    group.boundary = False
    bench.broken = {"lab.s1": "gone"}
    bench.step()
    bench.step(3)
    assert group.killed, "its writer hangs, so its batch is not waited for"
    bench.step(2)
    assert bench.faults_told[-1] == {"lab.s1": "gone"}
    spared = bench.queries[-1].run
    assert isinstance(spared, IngestRun)
    assert [s.relation.name for s in spared.streams] == ["s2"]
    assert not any(q.asked for q in bench.queries if q.run.name == "b")
    bench.broken = {}
    bench.step()
    bench.step(2)
    assert bench.queries[-1].run == run_of("a", 1, "s1", "s2"), "it is taken in again"
    assert bench.faults_told[-1] == {}


def test_the_runner_beats_while_it_looks() -> None:
    bench = Bench()
    for _ in range(50):
        bench.step()
    assert 4 <= bench.beats <= 6
