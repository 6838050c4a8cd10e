"""Outputs move to an older execution whose state has become theirs, and leave it with a copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from catalog import moves
from catalog.admission import taken_slots
from catalog.engines import FIRST
from catalog.executions import executions_of, leave, sharing
from catalog.models import Assignment, DeliveryClass, ExecutionRow, OutputRow, QueryRow
from catalog.moves import CLOCKS_MS, PATIENCE_MS, Beginning, Moves, carry_out, next_moves
from catalog.plan import Source
from catalog.run_counts import ANEW, LARGE, LATE, LOST, NO_ROOM, PATTERN_FULL
from catalog.run_names import query_run_name
from catalog.runs import QueryRun, RunReport, fingerprint
from catalog.wanted import fed_classes, report_status, wanted_runs
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World

NOW_MS = round(START.replace(tzinfo=UTC).timestamp() * 1_000)
# How far a tuple of the stream may be ahead.
AHEAD_MS = 60_000
TURN_MS = NOW_MS + CLOCKS_MS + AHEAD_MS + PATIENCE_MS
NOTHING = Moves({}, frozenset(), frozenset(), frozenset())


@dataclass
class Alike:
    """Outputs of equal queries with state: each has an execution of its own, with its number."""

    filled: Filled
    ids: dict[str, int] = field(default_factory=dict)

    @property
    def world(self) -> World:
        return self.filled.world

    def add(self, name: str, **values: Any) -> None:
        """An output that runs, whose state was whole a minute ago."""
        plan = Source(self.filled.relations["in1"])
        self.ids[name] = self.filled.output(name, plan, "in1").object_id
        self.filled.delivery(name, f"{name}1", "1")
        given = {"key": "k", "whole_ms": NOW_MS - 60_000, **values}
        self.edit(name, **given)

    def edit(self, name: str, **values: Any) -> None:
        """Change the output's first execution."""
        with self.world.catalog.bookkeeping() as session:
            row = session.get_one(ExecutionRow, self.ids[name])
            for attribute, value in values.items():
                setattr(row, attribute, value)

    def runs(self) -> dict[str, QueryRun]:
        """The wanted runs of queries."""
        with self.world.catalog.read() as session:
            return {r.name: r for r in wanted_runs(session) if isinstance(r, QueryRun)}

    def parts(self) -> Mapping[str, list[tuple[str, int | None, int | None, bool]]]:
        """Run -> its outputs, each with its part of the results, and whether it moves."""
        return {
            name: [(o.relation.name, o.after_ms, o.until_ms, o.moves) for o in run.outputs]
            for name, run in self.runs().items()
        }

    def apply(self, *names: str, **said: Any) -> None:
        """All wanted runs, or these alone, run as they are wanted."""
        for name, run in self.runs().items():
            if not names or name in names:
                self.report(name, fingerprint=fingerprint(run), **said)

    def report(self, run: str, state: str = "running", ago_s: int = 60, **said: Any) -> None:
        """Say what a run does, and since when if that is new."""
        since = START - timedelta(seconds=ago_s)
        with self.world.catalog.bookkeeping() as session:
            report_status(session, RunReport(run, state, **said), since)

    def look(self, **later: float) -> Moves:
        """The next steps at a later time."""
        with self.world.catalog.read() as session:
            return next_moves(session, START + timedelta(**later))

    def step(self, **later: float) -> Moves:
        """Carry out the next steps."""
        with self.world.catalog.bookkeeping() as session:
            found = next_moves(session, START + timedelta(**later))
            carry_out(session, found)
        return found

    def run(self, name: str) -> str:
        """The name of the run of the output's first execution."""
        return query_run_name(self.ids[name])

    def row(self, name: str) -> OutputRow:
        with self.world.catalog.read() as session:
            return session.get_one(OutputRow, self.ids[name])

    def execution(self, number: int) -> ExecutionRow:
        with self.world.catalog.read() as session:
            return session.get_one(ExecutionRow, number)

    def stop(self, name: str) -> None:
        """Stop the output's query, as its owner does."""
        with self.world.catalog.bookkeeping() as session:
            row = session.get_one(OutputRow, self.ids[name])
            session.get_one(QueryRow, row.query_id).running = False
            leave(session, [row.object_id], START)

    def start(self, name: str) -> None:
        self.world.edit(QueryRow, self.row(name).query_id, running=True)


@pytest.fixture
def alike(world: World) -> Alike:
    """Two equal queries with state, which both run."""
    filled = Filled(world)
    if world.catalog.engine.dialect.name == "postgresql":
        # The executions of the test have the ids of their outputs. Later ones have higher ids.
        with world.catalog.bookkeeping() as session:
            session.execute(text("SELECT setval(pg_get_serial_sequence('executions', 'id'), 900)"))
    filled.stream("in1", 1, 0, 1)
    made = Alike(filled)
    made.add("a")
    made.add("b")
    made.apply()
    return made


def begun(alike: Alike) -> None:
    """The second output has begun to move."""
    assert alike.step().begun == {alike.ids["b"]: Beginning(alike.ids["a"], TURN_MS)}


def turned(alike: Alike) -> None:
    """The second output turns."""
    begun(alike)
    alike.apply()
    assert alike.step().turned == {alike.ids["b"]}


def moved(alike: Alike) -> None:
    """The second output has moved."""
    turned(alike)
    alike.apply()
    alike.apply(alike.run("b"), delivered_ms=TURN_MS)
    assert alike.step(minutes=9).completed == {alike.ids["b"]}
    alike.apply()


def test_an_output_moves_step_by_step(alike: Alike) -> None:
    a, b = alike.run("a"), alike.run("b")
    alone = {a: [("a", None, None, False)], b: [("b", None, None, False)]}
    assert alike.parts() == alone
    begun(alike)
    assert alike.parts() == {
        a: [("a", None, None, False), ("b", TURN_MS, None, True)],
        b: [("b", None, None, True)],
    }
    assert alike.look() == NOTHING, "the older one does not compute it yet"
    alike.apply(b)
    assert alike.look() == NOTHING
    alike.apply(a)
    assert alike.step().turned == {alike.ids["b"]}
    both = alike.parts()
    assert both[b] == [("b", None, TURN_MS, True)]
    assert both[a] == [("a", None, None, False), ("b", TURN_MS, None, True)]
    for delivered in (None, TURN_MS - 1):
        alike.apply(b, delivered_ms=delivered)
        assert alike.look(hours=1) == NOTHING, "it has not delivered all"
    alike.apply(b, delivered_ms=TURN_MS)
    assert alike.step(hours=1).completed == {alike.ids["b"]}
    assert alike.parts() == {a: [("a", None, None, False), ("b", TURN_MS, None, False)]}
    assert alike.look(hours=1) == NOTHING


def test_the_end_of_a_move_restarts_nothing(alike: Alike) -> None:
    turned(alike)
    mark = fingerprint(alike.runs()[alike.run("a")])
    alike.apply(alike.run("b"), delivered_ms=TURN_MS)
    alike.step()
    assert fingerprint(alike.runs()[alike.run("a")]) == mark


def test_each_step_restarts_the_run_that_it_changes_alone(alike: Alike) -> None:
    def marks() -> list[str]:
        return [fingerprint(alike.runs()[alike.run(name)]) for name in ("a", "b")]

    first = marks()
    begun(alike)
    second = marks()
    assert second[0] != first[0] and second[1] == first[1]
    alike.apply()
    alike.step()
    third = marks()
    assert third[0] == second[0] and third[1] != second[1]


def test_nothing_moves_before_all_that_counts_was_seen_by_both(alike: Alike) -> None:
    for name in ("a", "b"):
        alike.edit(name, whole_ms=TURN_MS + 1)
        assert alike.look() == NOTHING
        alike.edit(name, whole_ms=TURN_MS)
    assert alike.look().begun.keys() == {alike.ids["b"]}


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("kind", [LATE, NO_ROOM, PATTERN_FULL, LOST, ANEW])
def test_state_that_lacks_tuples_is_not_shared(alike: Alike, name: str, kind: str) -> None:
    alike.report(alike.run(name), counted={kind: 1})
    assert alike.look() == NOTHING


def test_what_is_too_large_to_be_delivered_was_in_the_state(alike: Alike) -> None:
    alike.report(alike.run("a"), counted={LARGE: 1})
    assert alike.look().begun


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("state", ["failed", "starting", "restarting", "stopped"])
def test_what_does_not_run_does_not_move(alike: Alike, name: str, state: str) -> None:
    alike.report(alike.run(name), state)
    assert alike.look() == NOTHING


def test_what_has_just_begun_may_have_counts_that_are_not_known_yet(alike: Alike) -> None:
    for state in ("starting", "running"):
        alike.report(alike.run("a"), state, ago_s=29)
    assert alike.look() == NOTHING
    assert alike.look(seconds=1).begun


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("values", [{"on_trial": True}, {"parked_because": "it kills"}])
def test_what_is_suspected_does_not_move(alike: Alike, name: str, values: dict[str, Any]) -> None:
    given = {"home": FIRST, "engine": FIRST, "on_trial": False, **values}
    alike.world.add(Assignment(execution_id=alike.ids[name], **given))
    assert alike.look() == NOTHING


@pytest.mark.parametrize("values", [{"key": "other"}, {"key": ""}, {"whole_ms": None}])
def test_what_is_not_equal_does_not_move(alike: Alike, values: dict[str, Any]) -> None:
    alike.edit("a", **values)
    assert alike.look() == NOTHING
    if values == {"key": ""}:
        alike.edit("b", key="")
        assert alike.look() == NOTHING


def test_all_move_to_the_oldest(alike: Alike, monkeypatch: pytest.MonkeyPatch) -> None:
    alike.add("c")
    alike.apply()
    to_first = Beginning(alike.ids["a"], TURN_MS)
    assert alike.look().begun == {alike.ids["b"]: to_first, alike.ids["c"]: to_first}
    monkeypatch.setattr(moves, "MOST_SHARING", 2)
    assert alike.step().begun == {alike.ids["b"]: to_first}
    assert alike.look() == NOTHING, "nothing moves to what moves away"


def test_what_has_no_room_stays_for_others(alike: Alike, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MOST_SHARING", 1)
    assert alike.look() == NOTHING
    monkeypatch.setattr(moves, "MOST_SHARING", 2)
    for name in ("c", "d"):
        alike.add(name)
    alike.apply()
    assert alike.look().begun == {
        alike.ids["b"]: Beginning(alike.ids["a"], TURN_MS),
        alike.ids["d"]: Beginning(alike.ids["c"], TURN_MS),
    }


def test_a_move_that_is_late_is_given_up(alike: Alike) -> None:
    before = alike.parts()
    begun(alike)
    alike.apply()
    in_time = PATIENCE_MS / 1_000
    assert alike.look(seconds=in_time).turned
    late = alike.step(seconds=in_time + 1)
    assert late == Moves({}, frozenset({alike.ids["b"]}), frozenset(), frozenset())
    assert alike.parts() == before
    alike.apply()
    assert alike.look(seconds=in_time + 1).begun, "it is tried again"


def test_a_move_does_not_turn_to_what_has_lost_tuples(alike: Alike) -> None:
    begun(alike)
    alike.apply(counted={LOST: 1})
    assert alike.look() == NOTHING
    assert alike.step(hours=1).given_up == {alike.ids["b"]}


def test_what_turns_is_never_given_up(alike: Alike) -> None:
    turned(alike)
    alike.apply(counted={LOST: 1})
    assert alike.look(days=1) == NOTHING


def test_who_shares_is_counted_once_and_the_last_one_ends_it(alike: Alike) -> None:
    moved(alike)
    with alike.world.catalog.read() as session:
        assert sharing(session, alike.ids["a"]) == [alike.ids["a"], alike.ids["b"]]
        assert taken_slots(session, [FIRST]) == {FIRST: 1}
    alike.filled.remove("output a")
    assert alike.parts() == {alike.run("a"): [("b", TURN_MS, None, False)]}
    alike.filled.remove("output b")
    assert alike.parts() == {}


def test_a_stop_before_the_turn_ends_the_move(alike: Alike) -> None:
    begun(alike)
    alike.stop("b")
    assert alike.parts() == {alike.run("a"): [("a", None, None, False)]}
    alike.start("b")
    assert alike.parts() == {
        alike.run("a"): [("a", None, None, False)],
        alike.run("b"): [("b", None, None, False)],
    }


def test_a_stop_of_the_older_one_while_another_moves_to_it(alike: Alike) -> None:
    """The execution goes on for the other one, so the state that waits is a copy."""
    begun(alike)
    alike.stop("a")
    own = alike.execution(alike.row("a").execution_id)
    assert own.id not in alike.ids.values() and own.copy_of == alike.ids["a"]
    assert alike.parts() == {
        alike.run("a"): [("b", TURN_MS, None, True)],
        alike.run("b"): [("b", None, None, True)],
    }


def test_a_stop_while_it_turns_keeps_both_parts(alike: Alike) -> None:
    turned(alike)
    alike.stop("b")
    row = alike.row("b")
    assert row.execution_id == alike.ids["b"], "nobody shares that"
    copy = alike.execution(row.moves_to or 0)
    assert (copy.copy_of, copy.key, copy.begins_at) == (alike.ids["a"], "k", None)
    assert alike.runs()[alike.run("a")].copies == (query_run_name(copy.id),)
    assert alike.parts() == {alike.run("a"): [("a", None, None, False)]}
    alike.start("b")
    assert alike.parts() == {
        alike.run("a"): [("a", None, None, False)],
        alike.run("b"): [("b", None, TURN_MS, True)],
        query_run_name(copy.id): [("b", TURN_MS, None, True)],
    }
    with alike.world.catalog.read() as session:
        assert executions_of(session, [alike.ids["b"]]) == {alike.ids["b"], copy.id}
        assert taken_slots(session, [FIRST]) == {FIRST: 3}
    alike.apply()
    alike.apply(alike.run("b"), delivered_ms=TURN_MS)
    assert alike.step(hours=1).completed == {alike.ids["b"]}
    assert alike.row("b").execution_id == copy.id


def test_a_stop_leaves_with_a_copy_of_the_state_and_comes_back(alike: Alike) -> None:
    moved(alike)
    alike.stop("b")
    copy = alike.execution(alike.row("b").execution_id)
    name = query_run_name(copy.id)
    left = alike.execution(alike.ids["a"])
    assert (copy.plan, copy.starting_offsets) == (left.plan, left.starting_offsets)
    assert (copy.key, copy.whole_ms, copy.copy_of) == (left.key, left.whole_ms, left.id)
    assert alike.runs()[alike.run("a")].copies == (name,)
    alike.apply()
    alike.start("b")
    run = alike.runs()[name]
    assert run.copied_from == alike.run("a") and run.plan == alike.runs()[alike.run("a")].plan
    assert alike.parts()[name] == [("b", TURN_MS, None, False)], "nothing twice"
    alike.apply()
    later = NOW_MS + 3_600_000 + TURN_MS - NOW_MS
    assert alike.look(hours=1).begun == {alike.ids["b"]: Beginning(alike.ids["a"], later)}


def test_a_copy_of_state_that_lacks_tuples_is_not_shared(alike: Alike) -> None:
    moved(alike)
    alike.stop("b")
    alike.start("b")
    alike.add("c")
    alike.apply()
    assert alike.look().begun.keys() == {alike.ids["b"], alike.ids["c"]}
    alike.report(alike.run("a"), counted={NO_ROOM: 1})
    assert alike.look() == NOTHING


def test_the_last_output_keeps_the_execution_and_its_state(alike: Alike) -> None:
    moved(alike)
    alike.stop("b")
    alike.stop("a")
    assert alike.row("a").execution_id == alike.ids["a"]
    alike.start("a")
    assert alike.runs()[alike.run("a")].copied_from is None


def test_a_copy_is_wanted_only_as_long_as_its_output_is_there(alike: Alike) -> None:
    moved(alike)
    alike.stop("b")
    alike.filled.remove("output b")
    assert alike.runs()[alike.run("a")].copies == ()


def test_copies_are_no_reason_for_a_restart(alike: Alike) -> None:
    """The engine makes them at the start which the stop causes anyway."""
    moved(alike)
    alike.stop("b")
    mark = fingerprint(alike.runs()[alike.run("a")])
    alike.filled.remove("output b")
    assert fingerprint(alike.runs()[alike.run("a")]) == mark


def test_a_class_of_an_output_that_moves_is_fed_by_both(alike: Alike) -> None:
    def fed() -> bool:
        with alike.world.catalog.read() as session:
            rows = session.query(DeliveryClass).filter_by(topic="out.b.b1")
            (row,) = rows.all()
            return row.id in fed_classes(session, [row.id], {FIRST})

    assert fed()
    begun(alike)
    assert not fed()
    alike.apply()
    assert fed()
    alike.step()
    assert not fed()
    alike.apply(alike.run("b"))
    assert fed()
