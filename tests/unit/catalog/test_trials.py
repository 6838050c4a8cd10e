"""What becomes of executions when an engine dies: tried alone, let go home, or parked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catalog import trials
from catalog.assignments import assign, assigned_to, parked
from catalog.engines import FIRST, INGEST, PROBATION, query_engines
from catalog.errors import Conflict
from catalog.limits import Limits
from catalog.models import Assignment, Object, QueryRow
from catalog.plan import Source
from catalog.probation import DEATHS_TO_PARK, HEALTHY_BEATS, PROVEN_BEATS
from catalog.pulse import beat, heartbeat_of
from catalog.run_names import query_run_name
from catalog.run_state import QueryState, state_of_query
from catalog.runs import RunReport
from catalog.wanted import (
    forget_runs,
    generation,
    is_in_step,
    report_applied,
    report_status,
    wanted_runs,
)
from secfilter.catalog_ledger import CatalogLedger
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World

LIMITS = Limits(slots=10)
SECOND = "query-2"


class Engines:
    """Executions in engines that run exactly what they should, as the catalog says it."""

    def __init__(self, world: World, names: tuple[str, ...], count: int = 1) -> None:
        self.catalog, self.world, self.count = world.catalog, world, count
        filled = Filled(world)
        source = Source(filled.stream("in1", 1, 0))
        self.ids = {name: filled.output(name, source, "in1").object_id for name in names}
        for engine in (INGEST, *query_engines(count), PROBATION):
            self.begin(engine)
        for name in names:
            self.assign(name)

    def assign(self, *names: str, slots: int = 1) -> None:
        wanted = {self.ids[name]: slots for name in names}
        with self.catalog.bookkeeping() as session:
            assign(session, wanted, query_engines(self.count), LIMITS)

    def begin(self, engine: str) -> None:
        with self.catalog.bookkeeping() as session:
            forget_runs(session, engine)
            trials.begin(session, engine)

    def is_told_dead(self, engine: str) -> None:
        with self.catalog.bookkeeping() as session:
            trials.note_death(session, engine)

    def dies(self, engine: str) -> None:
        """It dies, and its next process begins."""
        self.is_told_dead(engine)
        self.begin(engine)

    def beat(self, engine: str, times: int = 1) -> None:
        """The engine starts and ends what it should, reports it, and says that it is alive."""
        for _ in range(times):
            here = self.running(engine)
            for output_id in self.ids.values():
                if self.row(output_id).engine == engine:
                    self.says(output_id, "running" if output_id in here else "stopped")
            with self.catalog.bookkeeping() as session:
                beat(session, engine)
                trials.keep(session, engine)

    def go_on(self, engine: str, beats: int) -> None:
        """The engine is alive for a while, and nothing else happens."""
        with self.catalog.bookkeeping() as session:
            heartbeat_of(session, engine).beats += beats

    def says(self, output_id: int, state: str) -> None:
        with self.catalog.bookkeeping() as session:
            report_status(session, RunReport(query_run_name(output_id), state), START)

    def running(self, engine: str) -> set[int]:
        with self.catalog.read() as session:
            names = {run.name for run in wanted_runs(session, engine)}
        return {i for i in self.ids.values() if query_run_name(i) in names}

    def named(self, engine: str) -> set[str]:
        here = self.running(engine)
        return {name for name, output_id in self.ids.items() if output_id in here}

    def row(self, output_id: int) -> Assignment:
        with self.catalog.read() as session:
            return session.get_one(Assignment, output_id)

    def state(self, name: str) -> QueryState:
        with self.catalog.read() as session:
            living = (INGEST, *query_engines(self.count), PROBATION)
            return state_of_query(session, [self.ids[name]], True, living)

    def edit_query(self, name: str, **values: Any) -> None:
        query = self.world.get_object(f"query {name}-query").id
        self.world.edit(QueryRow, query, **values)

    def lives_alone(self) -> None:
        """What is tried is started, and runs long enough."""
        self.beat(PROBATION, 2)
        self.go_on(PROBATION, PROVEN_BEATS)
        self.beat(PROBATION, 2)


@pytest.fixture
def two(world: World) -> Engines:
    """An old execution and a new one in one engine."""
    made = Engines(world, ("old", "new"))
    made.beat(FIRST)
    made.go_on(FIRST, HEALTHY_BEATS)
    made.assign("new")
    made.beat(FIRST)
    return made


def test_what_changed_lately_is_tried_alone_and_the_rest_runs_on(two: Engines) -> None:
    two.dies(FIRST)
    assert two.named(FIRST) == {"old"}
    assert two.named(PROBATION) == set(), "the engine has not begun with it yet"
    assert two.state("new").state == "restarting" and "apart" in two.state("new").message
    two.beat(PROBATION)
    assert two.named(PROBATION) == {"new"}
    two.beat(PROBATION)
    assert two.state("new").state == "running"


def test_a_trial_does_not_wait_for_a_beat(two: Engines) -> None:
    ledger = CatalogLedger(two.catalog, PROBATION)
    assert ledger.runs() == ()
    ledger.serve()
    two.dies(FIRST)
    ledger.runs()
    assert [run.name for run in ledger.runs()] == [query_run_name(two.ids["new"])]
    at_home = CatalogLedger(two.catalog, FIRST)
    at_home.serve()
    assert [run.name for run in at_home.runs()] == [query_run_name(two.ids["old"])]


def test_what_lives_alone_goes_home_and_only_once_it_has_ended_there(two: Engines) -> None:
    two.dies(FIRST)
    two.beat(PROBATION)
    two.go_on(PROBATION, PROVEN_BEATS - 1)
    two.beat(PROBATION)
    assert two.named(PROBATION) == set()
    assert two.named(FIRST) == {"old"}, "it still runs in the other engine"
    two.beat(PROBATION)
    assert two.named(FIRST) == {"old", "new"}


def test_what_dies_alone_three_times_is_parked_and_its_neighbour_never(two: Engines) -> None:
    two.dies(FIRST)
    for _ in range(DEATHS_TO_PARK):
        two.beat(PROBATION, 2)
        assert two.named(PROBATION) == {"new"}
        two.dies(PROBATION)
    two.beat(PROBATION)
    two.beat(FIRST)
    assert two.named(PROBATION) == set() and two.named(FIRST) == {"old"}
    state = two.state("new")
    assert state.state == "failed" and "3 times" in state.message
    assert two.state("old").state == "running"
    with two.catalog.read() as session:
        assert parked(session).keys() == {two.ids["new"]}
        assert not trials.awaits_trial(session)


def test_a_parked_one_that_is_started_again_runs_alone_first(two: Engines) -> None:
    two.dies(FIRST)
    for _ in range(DEATHS_TO_PARK):
        two.beat(PROBATION, 2)
        two.dies(PROBATION)
    two.assign("new")
    assert two.named(FIRST) == {"old"}
    two.beat(PROBATION)
    assert two.named(PROBATION) == {"new"}
    two.lives_alone()
    assert two.named(FIRST) == {"old", "new"}


@pytest.fixture
def young(world: World) -> Engines:
    """Four young executions whose engine has died."""
    made = Engines(world, ("a", "b", "c", "d"))
    made.beat(FIRST)
    made.dies(FIRST)
    return made


def test_all_that_are_suspected_run_together_at_once_and_go_home_together(young: Engines) -> None:
    assert young.named(FIRST) == set()
    young.beat(PROBATION)
    assert young.named(PROBATION) == {"a", "b", "c", "d"}
    young.lives_alone()
    assert young.named(FIRST) == {"a", "b", "c", "d"} and young.named(PROBATION) == set()


def test_a_group_whose_engine_dies_is_halved_until_the_killer_is_alone(young: Engines) -> None:
    proven, tried = set[str](), list[set[str]]()
    for _ in range(7):
        young.beat(PROBATION, 2)
        tried.append(young.named(PROBATION))
        if "c" in tried[-1]:
            young.dies(PROBATION)
        else:
            proven |= tried[-1]
            young.lives_alone()
    assert ["".join(sorted(group)) for group in tried] == ["abcd", "ab", "cd", "c", "d", "c", "c"]
    assert young.named(FIRST) == proven == {"a", "b", "d"}
    with young.catalog.read() as session:
        assert parked(session).keys() == {young.ids["c"]}


def test_a_death_is_told_before_anything_moves(two: Engines) -> None:
    """The dead engine's Spark may still run what is suspected."""
    two.is_told_dead(FIRST)
    with two.catalog.read() as session:
        assert trials.awaits_trial(session), "so the other engine can start its Spark"
    two.beat(PROBATION, 2)
    assert two.named(PROBATION) == set()
    two.begin(FIRST)
    two.beat(PROBATION)
    assert two.named(PROBATION) == {"new"}


def test_a_trial_starts_until_all_that_is_tried_runs(young: Engines) -> None:
    """So long its home begins nothing beside it."""

    def starts() -> bool:
        with young.catalog.read() as session:
            return trials.trial_starts(session)

    assert starts(), "it is due"
    young.beat(PROBATION)
    ids = [young.ids[name] for name in "abcd"]
    for output_id in ids:
        assert starts()
        young.says(output_id, "running")
    assert not starts()
    young.dies(PROBATION)
    assert starts()
    young.beat(PROBATION, 2)
    assert young.named(PROBATION) == {"a", "b"}
    assert not starts(), "the other half waits for its turn"
    young.says(ids[0], "restarting")
    assert starts()


def test_nothing_starts_where_nobody_is_on_trial(two: Engines) -> None:
    with two.catalog.read() as session:
        assert not trials.trial_starts(session)


def test_what_another_engine_suspects_is_a_group_of_its_own(world: World) -> None:
    engines = Engines(world, ("a", "b"), count=2)
    for engine in (FIRST, SECOND):
        engines.beat(engine)
        engines.dies(engine)
    engines.beat(PROBATION, 2)
    assert len(engines.named(PROBATION)) == 1
    engines.dies(PROBATION)
    engines.beat(PROBATION, 2)
    assert len(engines.named(PROBATION)) == 1
    engines.lives_alone()
    with engines.catalog.read() as session:
        assert not parked(session)


def test_an_end_in_order_blames_nobody(two: Engines) -> None:
    with two.catalog.bookkeeping() as session:
        trials.end(session, FIRST)
    two.begin(FIRST)
    assert two.named(FIRST) == {"old", "new"}


def test_what_is_stopped_on_trial_goes_home_and_the_others_go_on(world: World) -> None:
    engines = Engines(world, ("one", "two"))
    engines.dies(FIRST)
    engines.beat(PROBATION, 2)
    engines.edit_query("one", running=False)
    engines.beat(PROBATION, 3)
    assert engines.named(PROBATION) == {"two"}
    engines.edit_query("one", running=True)
    assert engines.named(FIRST) == {"one"}
    engines.lives_alone()
    assert engines.named(FIRST) == {"one", "two"}


def test_what_is_stopped_while_it_is_tried_lets_the_next_group_run(world: World) -> None:
    engines = Engines(world, ("one", "two"))
    engines.dies(FIRST)
    engines.beat(PROBATION, 2)
    engines.dies(PROBATION)
    engines.beat(PROBATION, 2)
    assert engines.named(PROBATION) == {"one"}
    engines.edit_query("one", running=False)
    engines.beat(PROBATION, 3)
    assert engines.named(PROBATION) == {"two"}


def test_executions_are_spread_and_what_finds_no_room_is_refused(world: World) -> None:
    engines = Engines(world, ("a", "b", "c"), count=2)
    assert sorted(len(engines.named(engine)) for engine in (FIRST, SECOND)) == [1, 2]
    with pytest.raises(Conflict, match=r"takes 11 tasks, .* and 9 of 10 are free"):
        engines.assign("c", slots=11)


def test_what_moves_to_another_engine_begins_there_once_it_has_ended_here(world: World) -> None:
    engines = Engines(world, ("a", "b"), count=2)
    engines.beat(FIRST)
    engines.beat(SECOND)
    assert (engines.named(FIRST), engines.named(SECOND)) == ({"b"}, {"a"})
    # With `b` away there is more room in the first engine.
    engines.edit_query("b", running=False)
    engines.assign("a")
    assert engines.row(engines.ids["a"]).home == FIRST
    assert engines.named(SECOND) == engines.named(FIRST) == set(), "it has not ended yet"
    engines.beat(SECOND)
    assert engines.named(FIRST) == {"a"}


def test_an_engine_that_is_no_more_gives_its_executions_up(world: World) -> None:
    engines = Engines(world, ("a", "b"), count=2)
    for engine in (FIRST, SECOND):
        engines.beat(engine)
    for gone, named in (((), {"b"}), ((SECOND,), {"a", "b"})):
        with engines.catalog.bookkeeping() as session:
            trials.give_up(session, [FIRST], gone, LIMITS)
        assert engines.named(FIRST) == named
    with engines.catalog.read() as session:
        assert not trials.has_superfluous(session, [FIRST])


def test_one_that_ended_in_order_gives_them_up_at_once(world: World) -> None:
    engines = Engines(world, ("a", "b"), count=2)
    with engines.catalog.bookkeeping() as session:
        trials.end(session, SECOND)
        trials.give_up(session, [FIRST], (), LIMITS)
    assert engines.named(FIRST) == {"a", "b"}


def test_a_change_is_applied_when_each_engine_has_told(two: Engines) -> None:
    def in_step(*engine: str) -> bool:
        with two.catalog.read() as session:
            return is_in_step(session, *engine)

    for engine in (INGEST, FIRST, PROBATION):
        assert not in_step() and not in_step(engine)
        with two.catalog.bookkeeping() as session:
            report_applied(session, engine, generation(session))
        assert in_step(engine)
    assert in_step()


def test_what_nobody_assigned_is_the_first_engines(world: World) -> None:
    filled = Filled(world)
    output = filled.output("out1", Source(filled.stream("in1", 1, 0)), "in1").object_id
    with world.catalog.read() as session:
        assert assigned_to(session, FIRST) == {output}
        assert assigned_to(session, SECOND) == assigned_to(session, PROBATION) == frozenset()


def test_what_cannot_start_keeps_nobody_waiting(world: World) -> None:
    """As one that writes a topic whose fence is not proven."""
    engines = Engines(world, ("one", "two"))
    engines.dies(FIRST)
    engines.beat(PROBATION, 2)
    engines.dies(PROBATION)
    engines.beat(PROBATION)
    assert engines.named(PROBATION) == {"one"}
    engines.go_on(PROBATION, PROVEN_BEATS)
    for _ in range(2):
        with engines.catalog.bookkeeping() as session:
            beat(session, PROBATION)
            trials.keep(session, PROBATION)
    assert engines.named(PROBATION) == {"two"}


def test_a_removed_one_is_not_waited_for(two: Engines) -> None:
    two.dies(FIRST)
    query = two.world.get_object("query new-query").id
    two.world.edit(Object, query, removed_at=START + timedelta(seconds=1))
    with two.catalog.read() as session:
        assert not trials.awaits_trial(session)
