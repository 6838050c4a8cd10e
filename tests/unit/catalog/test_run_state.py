"""What is said about a query: what is so, never what was so when somebody last said something."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.engines import FIRST
from catalog.models import QueryRow
from catalog.plan import Source
from catalog.run_state import QueryState, state_of_query
from catalog.runs import NOT_ENDED, RunReport
from catalog.store import Catalog
from catalog.wanted import forget_runs, generation, report_applied, report_faults, report_status
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World


class Told:
    """A query with one output, over one stream; what the runner says, and what is told."""

    def __init__(self, world: World) -> None:
        filled = Filled(world)
        source = filled.stream("in1", 1, 0)
        self.output = filled.output("out1", Source(source), "in1").object_id
        self.world, self.catalog = world, world.catalog
        self.query = world.get_object("query out1-query").id
        self.run = f"query-{self.output}"

    def says(self, state: str, message: str = "") -> None:
        with self.catalog.bookkeeping() as session:
            report_status(session, RunReport(self.run, state, message), START)

    def is_in_step(self) -> None:
        with self.catalog.bookkeeping() as session:
            report_applied(session, FIRST, generation(session))

    def stop(self) -> None:
        self.world.edit(QueryRow, self.query, running=False)

    def state(self, *, alive: bool = True) -> QueryState:
        with self.catalog.read() as session:
            running = session.get_one(QueryRow, self.query).running
            return state_of_query(session, [self.output], running, {FIRST} if alive else ())


@pytest.fixture
def told(world: World) -> Told:
    return Told(world)


def begin_anew(catalog: Catalog) -> None:
    with catalog.bookkeeping() as session:
        forget_runs(session, FIRST)


def test_what_the_runner_has_not_come_to_starts(told: Told) -> None:
    begin_anew(told.catalog)
    assert told.state().state == "starting"
    told.says("stopped")
    assert told.state().state == "starting", "it was stopped, and is wanted again"


def test_what_the_runner_says_is_told_with_its_beginning(told: Told) -> None:
    for state, message in (("starting", ""), ("running", ""), ("failed", "a topic is not there")):
        told.says(state, message)
        assert told.state() == QueryState(state, message, START)


@pytest.mark.parametrize("said", ["starting", "running", "failed", "stopped"])
def test_nothing_is_known_while_the_runner_is_dead(told: Told, said: str) -> None:
    told.says(said)
    assert told.state(alive=False).state == "unknown"


def test_what_was_stopped_is_stopped_once_its_run_has_ended(told: Told) -> None:
    told.says("running")
    told.stop()
    assert told.state().state == "stopping"
    told.says("running", NOT_ENDED)
    assert told.state() == QueryState("stopping", NOT_ENDED, START)
    assert told.state(alive=False).state == "unknown"
    told.says("stopped")
    assert told.state().state == told.state(alive=False).state == "stopped"


@pytest.mark.parametrize(
    ("faults", "why"),
    [({}, "fence"), ({"in.in1": "gone"}, "fence"), ({"lab.in1": "gone"}, "topic")],
)
def test_what_stands_still_says_why(told: Told, faults: dict[str, Any], why: str) -> None:
    told.says("stopped")
    with told.catalog.bookkeeping() as session:
        report_faults(session, FIRST, faults, START)
    told.is_in_step()
    state = told.state()
    assert state.state == "stopped" and why in state.message
    assert "in1" not in state.message, "who asks may not see what it reads"
