"""Semantics `isolated`: each class has a run of its own, and nothing hidden changes it (001 §2)."""

from __future__ import annotations

import pytest

from catalog.admission import runs_of, slots_of
from catalog.assignments import assigned_to, hand_over
from catalog.canonical import sharing_key
from catalog.category_kind import CategoryKind
from catalog.engines import FIRST
from catalog.executions import run_names_of
from catalog.label import Label
from catalog.limits import Limits
from catalog.models import Assignment, CategoryRow, ClauseRole, DeliveryClass, OutputRow, RunStatus
from catalog.placement import PLACEMENTS, Placement
from catalog.plan import Source, Union
from catalog.run_names import execution_of, query_run_name
from catalog.run_state import QueryState, state_of_query
from catalog.runs import QueryRun, RunReport, fingerprint
from catalog.wanted import fed_classes, generation, report_applied, report_status
from tests.plans import checked
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World

ONE, TWO = 0, 70
BEGINS = {"lab.in1": {"0": 9}, "lab.in2": {"0": 4}}


class Apart:
    """An output over two streams, with a class for the first and one for both."""

    def __init__(self, world: World) -> None:
        self.world, self.filled = world, Filled(world)
        streams = [self.filled.stream(name, 1, bit) for name, bit in (("in1", ONE), ("in2", TWO))]
        self.plan = Union(tuple(map(Source, streams)))
        self.output = self.filled.output("out1", self.plan, "in1", "in2").object_id
        world.edit(OutputRow, self.output, placement=Placement.APART)
        begins = {"starting_offsets": BEGINS}
        self.low = self.filled.delivery("out1", "low", Label.of(ONE).to_wire(), **begins)
        self.high = self.filled.delivery("out1", "high", Label.of(ONE, TWO).to_wire(), **begins)

    def run(self, of: DeliveryClass) -> QueryRun:
        run = self.filled.runs()[query_run_name(self.output, of.id)]
        assert isinstance(run, QueryRun)
        return run

    def reaches(self, of: DeliveryClass) -> dict[str, Label]:
        run = self.run(of)
        return {name: run.reach_of(self.filled.relations[name]) for name in ("in1", "in2")}

    def says(self, of: DeliveryClass, state: str, message: str = "") -> None:
        report = RunReport(self.run(of).name, state, message, fingerprint(self.run(of)))
        with self.world.catalog.bookkeeping() as session:
            report_status(session, report, START)

    def state(self) -> QueryState:
        with self.world.catalog.bookkeeping() as session:
            report_applied(session, FIRST, generation(session))
        with self.world.catalog.read() as session:
            return state_of_query(session, [self.output], True, {FIRST})


@pytest.fixture
def apart(world: World) -> Apart:
    return Apart(world)


def test_each_class_has_a_run_that_reads_nothing_but_what_it_may_see(apart: Apart) -> None:
    names = [query_run_name(apart.output, each.id) for each in (apart.low, apart.high)]
    assert {*apart.filled.runs()} == {"ingest-1", *names}
    assert apart.reaches(apart.low) == {"in1": Label.of(ONE), "in2": Label()}
    assert apart.reaches(apart.high) == {"in1": Label.of(ONE), "in2": Label.of(TWO)}
    for each in (apart.low, apart.high):
        run = apart.run(each)
        assert [cls.topic for cls in run.classes] == [each.topic]
        assert run.starting_offsets == run.outputs[0].begins == BEGINS
        assert not run.labelled
    with apart.world.catalog.read() as session:
        assert run_names_of(session, apart.output) == tuple(names)
        assert {query_run_name(each) for each in assigned_to(session, FIRST)} >= {
            query_run_name(apart.output)
        }


def test_nothing_of_a_run_changes_with_what_its_class_may_not_see(apart: Apart) -> None:
    """So a hidden category, of a tuple or of a stream, starts no run of another class anew."""
    before = [fingerprint(apart.run(each)) for each in (apart.low, apart.high)]
    clause = {"kind": CategoryKind.ROLE_CLAUSE}
    stream = apart.world.get_object("stream in2").id
    apart.world.add(CategoryRow(bit=90, kind=CategoryKind.ROLE))
    apart.world.add(CategoryRow(bit=91, stream_id=stream, **clause))
    apart.world.add(ClauseRole(clause_bit=91, role_bit=90))
    apart.filled.delivery("out1", "third", Label.of(TWO).to_wire(), starting_offsets=BEGINS)
    assert [fingerprint(apart.run(each)) for each in (apart.low, apart.high)] == before
    apart.world.edit(OutputRow, apart.output, placement=Placement.SOURCES)
    shared = apart.filled.query("out1")
    assert shared.reach_of(apart.filled.relations["in2"]) == Label.of(TWO, 91)


def test_a_class_is_fed_when_its_own_run_runs(apart: Apart) -> None:
    apart.says(apart.low, "running")
    apart.says(apart.high, "starting")
    with apart.world.catalog.read() as session:
        ids = [apart.low.id, apart.high.id]
        assert fed_classes(session, ids, {FIRST}) == {apart.low.id}


def test_the_state_of_the_query_is_that_of_its_worst_run(apart: Apart) -> None:
    assert apart.state().state == "stopped", "no run has said anything"
    apart.says(apart.low, "running")
    assert apart.state().state == "stopped", "one of them has not"
    apart.says(apart.high, "running")
    assert apart.state() == QueryState("running", "", START)
    apart.says(apart.high, "failed", "a topic is not there")
    assert apart.state() == QueryState("failed", "a topic is not there", START)
    for each in (apart.low, apart.high):
        apart.world.edit(DeliveryClass, each.id, closed_at=START)
    assert apart.state().state == "running"
    assert "nobody subscribes" in apart.state().message


def test_an_execution_moves_when_none_of_its_runs_runs(apart: Apart) -> None:
    row = Assignment(execution_id=apart.output, home="query-2", engine=FIRST, on_trial=False)
    apart.world.add(row)
    apart.says(apart.high, "running")
    with apart.world.catalog.bookkeeping() as session:
        assert not hand_over(session, session.get_one(Assignment, apart.output))
    apart.says(apart.high, "stopped")
    # The run of another execution whose number begins like this one's.
    apart.world.add(
        RunStatus(name=f"query-{apart.output}0-1", state="running", updated_at=START, since=START)
    )
    with apart.world.catalog.bookkeeping() as session:
        assert hand_over(session, session.get_one(Assignment, apart.output))


def test_it_takes_the_tasks_of_all_its_classes_and_is_shared_by_nobody(apart: Apart) -> None:
    limits = Limits(isolated_classes=3)
    assert [runs_of(each, limits) for each in Placement] == [1, 1, 3, 1]
    ends = {"lab.in1": [1, 2], "lab.in2": [1]}
    plan = checked(apart.plan)
    assert slots_of(plan.plan, ends, runs_of(Placement.APART, limits)) == 9
    assert sharing_key(plan, None, Placement.SOURCES)
    assert sharing_key(plan, None, Placement.APART) == ""


def test_names_of_runs_and_of_semantics() -> None:
    assert [execution_of(each) for each in ("query-12", "query-12-7", "ingest-1")] == [12, 12, None]
    assert {each.semantics: each for each in Placement} == dict(PLACEMENTS)
    assert [each.by_class for each in Placement] == [False, True, True, False]
