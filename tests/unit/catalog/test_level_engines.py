"""Level engines: no engine ever runs two levels, and what finds no engine waits (001 §2)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catalog import trials
from catalog.admission import runs_in, taken_slots
from catalog.assignments import engine_of
from catalog.engines import FIRST, LEVELS, PROBATION
from catalog.executions import executions_of, run_names_of
from catalog.label import Label
from catalog.level_engines import free_engines, give_engines, waiting_classes
from catalog.limits import Limits
from catalog.models import Assignment, DeliveryClass, OutputRow, RunStatus
from catalog.placement import Placement
from catalog.plan import Source
from catalog.probation import HEALTHY_BEATS, PROVEN_BEATS
from catalog.pulse import heartbeat_of
from catalog.run_names import query_run_name
from catalog.run_state import state_of_query
from catalog.runs import QueryRun, RunReport
from catalog.spaces import Spaces
from catalog.wanted import generation, report_applied, report_status, wanted_runs
from tests.unit.catalog.test_isolated import BEGINS, ONE, TWO, Apart
from tests.unit.catalog.world import START, World

SECOND, THIRD = "query-2", "query-3"
SPACES = Spaces(3, {}, 2)
USUAL = Limits()
LOW, HIGH, OTHER = (Label.of(*bits).to_wire() for bits in ((ONE,), (ONE, TWO), (TWO,)))


class Levels(Apart):
    """An isolated output with two classes, and another one with none, that wait for engines."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.second = self.filled.output("out2", self.plan, "in1", "in2").object_id
        self.plain = self.filled.output("plain", Source(self.filled.relations["in1"]), "in1")
        for output in (self.output, self.second):
            isolated = {"placement": Placement.APART, "starting_offsets": BEGINS}
            world.edit(OutputRow, output, **isolated)
            world.add(Assignment(execution_id=output, home=LEVELS, engine=LEVELS))

    def open(self, name: str, level: str, output: str = "out2") -> DeliveryClass:
        return self.filled.delivery(output, name, level, starting_offsets=BEGINS)

    def give(self, spaces: Spaces = SPACES, limits: Limits = USUAL) -> Sequence[str]:
        """Give engines to all that wait; the names of the classes that wait on."""
        with self.world.catalog.bookkeeping() as session:
            waiting = [row for row, _ in waiting_classes(session, spaces)]
            return [row.name for row in give_engines(session, spaces, limits, waiting)]

    def free(self) -> Sequence[str]:
        with self.world.catalog.read() as session:
            return free_engines(session, SPACES)

    def engine(self, of: DeliveryClass) -> str:
        """Where the class is assigned to; nowhere if it has no execution of its own."""
        with self.world.catalog.read() as session:
            row = session.get_one(DeliveryClass, of.id)
            if row.execution_id is None:
                return ""
            return session.get_one(Assignment, row.execution_id).home

    def run_name(self, of: DeliveryClass) -> str:
        with self.world.catalog.read() as session:
            row = session.get_one(DeliveryClass, of.id)
            output = session.get_one(OutputRow, row.output_id)
            return query_run_name(row.execution_id or output.execution_id, of.id)

    def running(self, engine: str) -> set[str]:
        with self.world.catalog.read() as session:
            return {run.name for run in wanted_runs(session, engine)}

    def reports(self, of: DeliveryClass, state: str) -> None:
        with self.world.catalog.bookkeeping() as session:
            report_status(session, RunReport(self.run_name(of), state), START)

    def leaves(self, of: DeliveryClass, **when: object) -> None:
        self.world.edit(DeliveryClass, of.id, closed_at=START, **when)

    def told(self) -> tuple[str, str]:
        with self.world.catalog.bookkeeping() as session:
            for engine in (FIRST, SECOND, THIRD):
                report_applied(session, engine, generation(session))
        with self.world.catalog.read() as session:
            state = state_of_query(session, [self.output], True, {FIRST, SECOND, THIRD})
        return state.state, state.message


@pytest.fixture
def levels(world: World) -> Levels:
    return Levels(world)


def test_each_level_runs_in_an_engine_of_its_own(levels: Levels) -> None:
    assert levels.give() == []
    assert (levels.engine(levels.low), levels.engine(levels.high)) == (SECOND, THIRD)
    for engine, of in ((SECOND, levels.low), (THIRD, levels.high)):
        assert levels.running(engine) == {levels.run_name(of)}
    assert levels.running(FIRST) == {query_run_name(levels.plain.object_id)}
    names = [levels.run_name(each) for each in (levels.low, levels.high)]
    with levels.world.catalog.read() as session:
        assert waiting_classes(session, SPACES) == []
        assert list(run_names_of(session, levels.output)) == names
        assert [engine_of(session, name) for name in names] == [SECOND, THIRD]
        assert len(executions_of(session, [levels.output])) == 3
        assert taken_slots(session, [FIRST, SECOND, THIRD])[SECOND] == 2
    run = levels.filled.runs()[names[0]]
    assert isinstance(run, QueryRun)
    assert [each.topic for each in run.classes] == [levels.low.topic]


def test_what_waits_runs_nowhere_and_people_are_told(levels: Levels) -> None:
    for engine in (FIRST, SECOND, THIRD, PROBATION):
        assert not levels.running(engine) & {levels.run_name(levels.low)}
    assert levels.told() == ("starting", "no engine is free for one of the levels that read it")
    assert levels.give() == []
    for each in (levels.low, levels.high):
        levels.reports(each, "running")
    assert levels.told() == ("running", "")


def test_a_level_has_one_engine_for_all_outputs_and_a_third_level_waits(levels: Levels) -> None:
    same = levels.open("same", HIGH)
    third = levels.open("third", OTHER)
    assert levels.give() == ["third"]
    assert levels.engine(same) == levels.engine(levels.high) != levels.engine(levels.low)
    assert levels.engine(third) == ""
    assert levels.give() == ["third"], "it waits on"


def test_an_engine_is_not_free_before_the_last_run_of_its_level_has_ended(levels: Levels) -> None:
    third = levels.open("third", OTHER)
    assert levels.give() == ["third"]
    levels.leaves(levels.low)
    assert levels.give() == ["third"], "its run may not have ended"
    assert levels.free() == []
    levels.leaves(levels.low, removed_at=START)
    assert levels.free() == [SECOND]
    assert levels.give() == []
    assert levels.engine(third) == SECOND


def test_an_engine_without_room_is_not_given(levels: Levels) -> None:
    assert levels.give(limits=Limits(slots=1)) == ["low", "high"]
    another = levels.open("another", LOW)
    assert levels.give(limits=Limits(slots=3)) == ["another"]
    assert levels.engine(another) == ""


def test_where_something_else_runs_no_level_does(levels: Levels) -> None:
    """The settings have made an engine one for levels, and a query runs there since before."""
    levels.world.add(Assignment(execution_id=levels.plain.object_id, home=SECOND, engine=SECOND))
    assert levels.give() == ["high"]
    assert levels.engine(levels.low) == THIRD


def test_when_the_settings_change_no_level_stays_where_others_may_come(levels: Levels) -> None:
    assert levels.give() == []
    levels.reports(levels.low, "running")
    fewer = Spaces(3, {}, 1)
    assert levels.give(fewer) == ["low"], "the only engine is that of the other level"
    assert levels.running(SECOND) == set()
    with levels.world.catalog.read() as session:
        assert engine_of(session, levels.run_name(levels.low)) == SECOND, "it has not ended there"
    assert levels.give(Spaces(3)) == []
    assert levels.engine(levels.low) in {FIRST, SECOND, THIRD}
    assert levels.engine(levels.high) == THIRD


def test_what_ran_in_an_engine_that_is_gone_waits_for_another_one(levels: Levels) -> None:
    assert levels.give() == []
    with levels.world.catalog.bookkeeping() as session:
        heartbeat_of(session, THIRD).ended = True
        trials.give_up(session, (FIRST, SECOND), (), USUAL, [FIRST])
    assert levels.engine(levels.high) == LEVELS
    assert levels.give(Spaces(2, {}, 1)) == ["high"]
    levels.leaves(levels.low, removed_at=START)
    assert levels.give(Spaces(2, {}, 1)) == []
    assert levels.engine(levels.high) == SECOND


def test_what_is_suspected_is_tried_level_by_level(levels: Levels) -> None:
    """So two levels are never in one process, also when both engines died."""
    assert levels.give() == []
    for engine in (SECOND, THIRD):
        with levels.world.catalog.bookkeeping() as session:
            trials.note_death(session, engine)
            trials.begin(session, engine)
    assert levels.running(SECOND) == levels.running(THIRD) == set()
    seen = []
    for _ in range(2):
        with levels.world.catalog.bookkeeping() as session:
            trials.keep(session, PROBATION)
        seen.append(levels.running(PROBATION))
        with levels.world.catalog.bookkeeping() as session:
            heartbeat_of(session, PROBATION).beats += PROVEN_BEATS
            trials.keep(session, PROBATION)
        (name,) = seen[-1]
        assert levels.running(PROBATION) == set()
        with levels.world.catalog.bookkeeping() as session:
            session.merge(RunStatus(name=name, state="stopped", updated_at=START, since=START))
            trials.keep(session, PROBATION)
    assert seen == [{levels.run_name(each)} for each in (levels.low, levels.high)]
    assert levels.running(SECOND) == seen[0] and levels.running(THIRD) == seen[1]


def test_what_did_not_change_lately_is_not_suspected(levels: Levels) -> None:
    assert levels.give() == []
    with levels.world.catalog.bookkeeping() as session:
        heartbeat_of(session, SECOND).beats += HEALTHY_BEATS
        trials.note_death(session, SECOND)
        trials.begin(session, SECOND)
    assert levels.running(SECOND) == {levels.run_name(levels.low)}


def test_engines_that_are_for_levels() -> None:
    assert (Spaces(4, {}, 2).of_levels, Spaces(2).of_levels) == (("query-3", "query-4"), ())
    spaces = Spaces(4, {"DESK": SECOND}, 2)
    assert spaces.homes() == spaces.homes("BACK") == (FIRST,)
    assert spaces.homes("DESK", Placement.APART) == (SECOND,), "the role's own engine goes first"
    assert spaces.homes("BACK", Placement.APART) == (LEVELS,)
    assert Spaces(2).homes(None, Placement.APART) == (FIRST, SECOND)
    for count, of_levels in ((1, 1), (2, 2), (2, -1)):
        with pytest.raises(ValueError, match="level_engines"):
            Spaces(count, {}, of_levels)
    with pytest.raises(ValueError, match=r"DESK = 'query-3' .* \(query-2\)"):
        Spaces(3, {"DESK": THIRD}, 1)
    limits = Limits(isolated_classes=3)
    assert [runs_in([each], Placement.APART, limits) for each in (FIRST, LEVELS)] == [3, 0]
