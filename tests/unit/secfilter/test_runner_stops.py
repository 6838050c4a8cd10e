"""The runner ends what is not wanted any more, and what does not end is in the way of no other."""

from catalog.runs import topics_of
from tests.unit.secfilter.runner_bench import Bench, run_of


def test_a_batch_that_does_not_end_is_broken_off() -> None:
    bench = Bench((run_of("a"),))
    bench.step()
    bench.queries[0].boundary = False
    bench.wanted = ()
    bench.step()
    bench.step(41)
    assert bench.queries[0].killed


def test_a_query_that_will_not_end_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    bench.queries[0].boundary, bench.queries[0].stuck = False, True
    bench.wanted = (run_of("c"),)
    for _ in range(3):
        bench.step(41)
    other = bench.queries[1].run.name
    assert {other: "stopped", "c": "running"}.items() <= dict(bench.states).items()
    bench.queries[0].stuck = False
    bench.step(41)
    assert bench.queries[0].killed, "it is tried again"


def test_the_end_breaks_off_what_does_not_end_and_all_else() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    for query in bench.queries:
        query.boundary = False
    bench.queries[0].stuck = True
    times = iter((200.0, 200.0, 500.0))
    bench.runner._clock = lambda: next(times, 500.0)
    bench.runner.end()
    assert bench.queries[1].killed


def test_the_end_stops_everything_at_batch_ends() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    bench.runner.end()
    assert {s for _, s in bench.states[-2:]} == {"stopped"}
    assert all(q.asked and not q.killed for q in bench.queries)


def test_what_was_removed_while_it_started_is_ended_when_its_start_returns() -> None:
    bench = Bench((run_of("a"),), slow=True)
    bench.step()
    bench.wanted = ()
    bench.step()
    assert bench.used["a"] == topics_of(run_of("a")), "its start may be reading them"
    bench.slow = False
    bench.let_go()
    bench.step()
    assert bench.queries[0].asked
    bench.step(2)
    assert bench.told[-1] == ("a", "stopped", "") and bench.used["a"] == frozenset()


def test_a_stop_that_hangs_is_in_nobodys_way() -> None:
    bench = Bench((run_of("a"), run_of("b")))
    bench.step()
    for query in bench.queries:
        query.boundary = False
    bench.wanted, bench.slow = (run_of("b", 2),), True
    bench.step()
    bench.step(41)
    bench.slow, held = False, bench.held
    assert len(held) == 2, "each is asked once, in the background"
    bench.let_go()
    bench.step(41)
    bench.step(2)
    assert all(query.killed for query in bench.queries[:2])


def test_a_run_that_cannot_end_keeps_its_own_topics_alone() -> None:
    bench = Bench((run_of("a", 1, "s1"), run_of("b", 1, "s2")))
    bench.step()
    stuck = next(query for query in bench.queries if query.run.name == "a")
    stuck.boundary, stuck.stuck = False, True
    before = bench.applications
    bench.wanted = ()
    for _ in range(3):
        bench.step(41)
    assert bench.applications > before, "nobody waits for it"
    assert bench.used == {"a": topics_of(run_of("a", 1, "s1")), "b": frozenset()}
    stuck.stuck = False
    bench.step(41)
    bench.step(2)
    assert bench.used["a"] == frozenset()
