"""Queries that run together miss nothing, whatever comes, goes, changes or crashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.runs import FusedRun, fingerprint
from tests.lanes import number_of
from tests.unit.secfilter.fusion_world import LONG_S, PARTITIONS, FakeQuery, World, members

_EXAMPLES = number_of("FUSION_EXAMPLES", sample=80, long=2_000)
Action = Callable[[World], object]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def settled(world: World, count: int) -> FakeQuery:
    """A world with so many queries that run together, without a repetition until now."""
    for _ in range(count):
        world.add()
    world.turn()
    world.now += LONG_S
    for _ in range(4):
        world.turn()
    (fused,) = world.fused()
    assert members(fused) == [f"query-{number}" for number in range(1, count + 1)]
    world.delivered.clear()
    return fused


def send(world: World, count: int = 1) -> None:
    for partition in PARTITIONS:
        world.ends[partition] += count


def test_a_query_begins_alone_and_joins_when_it_is_steady(world: World) -> None:
    world.add()
    world.add()
    world.turn()
    assert not world.fused()
    assert world.running("query-1") and world.running("query-2")
    send(world)
    world.now += LONG_S
    world.turn()
    (fused,) = world.fused()
    assert members(fused) == ["query-1", "query-2"]
    for _ in range(3):
        world.turn()
    assert not world.running("query-1") and not world.running("query-2")
    assert all(world.said[each].state == "running" for each in world.wanted)
    assert world.missed() == {}


def test_a_query_goes_on_by_itself_until_its_group_is_planned(world: World) -> None:
    world.add()
    world.add()
    world.turn()
    for name in world.wanted:
        (alone,) = world.running(name)
        # Its batches would become longer now.
        alone.hurried = True
    world.plans = False
    world.now += LONG_S * 0.5
    for _ in range(5):
        send(world)
        world.now += LONG_S
        world.turn()
    (fused,) = world.fused()
    assert not fused.planned
    own = [world.running(name) for name in world.wanted]
    assert all(own) and not [each for (each,) in own if each.asked], "they would not start again"
    assert world.delivered["out.o1.c"].keys() == {(p, o) for p in PARTITIONS for o in range(5)}
    assert world.said["query-1"].state == "running"
    world.plan_all()
    send(world)
    for _ in range(3):
        world.turn()
    assert not [name for name in world.wanted if world.running(name)]
    assert world.missed() == {}


def test_a_query_that_may_not_run_ends_while_its_group_is_planned(world: World) -> None:
    world.add()
    world.add()
    world.turn()
    world.plans = False
    world.now += LONG_S
    world.turn()
    assert world.fused()
    world.take("query-1")
    for _ in range(3):
        world.turn()
    assert world.said["query-1"].state == "stopped" and not world.fused()
    assert world.running("query-2")


def test_queries_that_come_one_after_the_other_begin_to_run_together_at_once(world: World) -> None:
    for _ in range(10):
        world.add()
        world.step(2.5)
    for _ in range(150):
        world.turn()
    (only,) = [each for each in world.queries if isinstance(each.run, FusedRun)]
    assert len(members(only)) == 10
    assert world.missed() == {}


def test_a_query_waits_for_others_for_a_moment_only(world: World) -> None:
    world.add()
    world.add()
    # Somebody adds queries again and again.
    for number in range(130):
        world.turn()
        if number % 10 == 0:
            world.add()
    assert {"query-1", "query-2"} <= {*members(world.fused()[0])}


def test_one_query_alone_runs_alone(world: World) -> None:
    world.add()
    for _ in range(5):
        world.long_turn()
    assert not world.fused() and world.running("query-1")


def test_a_new_query_disturbs_nobody(world: World) -> None:
    fused = settled(world, 5)
    world.add()
    for _ in range(5):
        world.turn()
    assert world.fused() == [fused] and not fused.asked, "the group goes on as it is"
    assert world.running("query-6")
    send(world)
    world.now += LONG_S
    world.turn()
    world.turn()
    assert world.fused() == [fused], "one is less than a quarter of five"
    world.add()
    world.now += LONG_S
    for _ in range(3):
        world.turn()
        world.now += LONG_S
    (again,) = world.fused()
    assert len(members(again)) == 7
    assert world.missed() == {}
    assert not {topic for topic in world.repeated() if "o6" not in topic and "o7" not in topic}


def test_a_change_of_one_leaves_the_others_where_they_are(world: World) -> None:
    settled(world, 3)
    send(world)
    world.open_class("query-2")
    world.step()
    assert world.running("query-2-side"), "the new class is fed at once"
    assert world.said["query-2"].fingerprint == fingerprint(world.wanted["query-2"])
    for _ in range(4):
        send(world)
        world.turn()
    (fused,) = world.fused()
    assert members(fused) == ["query-1", "query-3"]
    assert world.running("query-2")
    assert world.missed() == {} and world.repeated() <= {"out.o2.c1"}, "the side run's own topic"


def test_what_is_removed_ends_and_the_others_go_on(world: World) -> None:
    settled(world, 3)
    world.take("query-2")
    send(world)
    for _ in range(3):
        world.turn()
    (fused,) = world.fused()
    assert members(fused) == ["query-1", "query-3"]
    assert world.said["query-2"].state == "stopped"
    assert world.missed() == {} and not world.repeated()


def test_what_was_stopped_goes_on_where_the_group_had_come_without_it(world: World) -> None:
    settled(world, 3)
    stopped = world.wanted["query-2"]
    world.take("query-2")
    send(world)
    for _ in range(3):
        world.turn()
    assert world.delivered["out.o2.c"].keys() == {("0", 0), ("1", 0)}, "the batch in which it was"
    send(world, 5)
    world.turn()
    world.wanted["query-2"] = stopped
    for _ in range(3):
        world.turn()
    got = world.delivered["out.o2.c"]
    assert got.keys() == {(p, o) for p in PARTITIONS for o in range(6)}
    assert not world.repeated()


def test_the_last_of_a_group_runs_alone(world: World) -> None:
    settled(world, 2)
    world.take("query-1")
    for _ in range(3):
        send(world)
        world.turn()
    assert not world.fused() and world.running("query-2")
    assert world.missed() == {} and not world.repeated()


def test_a_group_goes_on_when_the_engine_comes_back(world: World) -> None:
    settled(world, 3)
    send(world)
    world.turn()
    world.begin_engine()
    send(world)
    world.turn()
    (fused,) = world.fused()
    assert members(fused) == ["query-1", "query-2", "query-3"]
    assert not world.running("query-1"), "none has begun alone in between"
    assert world.missed() == {} and not world.repeated()


def test_another_engine_that_fuses_nothing_takes_over(world: World) -> None:
    settled(world, 2)
    send(world)
    world.turn()
    world.fuses = False
    world.begin_engine()
    send(world)
    world.turn()
    world.turn()
    assert not world.fused()
    assert world.running("query-1") and world.running("query-2")
    assert world.missed() == {} and not world.repeated()


def test_a_group_that_fails_once_goes_on(world: World) -> None:
    fused = settled(world, 3)
    fused.crash()
    for _ in range(3):
        world.turn()
    assert len(world.fused()) == 1 and world.missed() == {}


def test_a_group_that_fails_again_and_again_is_split(world: World) -> None:
    fused = settled(world, 3)
    send(world)
    for _ in range(8):
        for each in world.fused():
            each.crash()
        world.now += 5
        world.step()
    assert fused.over and not world.fused()
    for _ in range(3):
        world.turn()
    assert all(world.running(each) for each in world.wanted)
    assert world.missed() == {}
    world.now += LONG_S * 3 / 4
    world.turn()
    assert not world.fused(), "they wait twice as long as before"
    world.settle()
    assert len(world.fused()) == 1


def test_a_group_that_does_not_start_keeps_nobody_from_running(world: World) -> None:
    world.add()
    world.add()
    world.turn()
    world.refused = {"query-9"}
    world.now += LONG_S
    for _ in range(8):
        send(world)
        world.turn()
        world.now += 5
    assert world.running("query-1") and world.running("query-2")
    assert world.missed() == {} and not world.repeated()


def test_what_a_group_counts_is_told_for_its_members(world: World) -> None:
    fused = settled(world, 2)
    fused.counts = {"query-1/too_large": 2, "without_label": 3}
    for _ in range(8):
        world.turn()
    assert world.counted == {
        "query-1": {"too_large": 2, "without_label": 3},
        "query-2": {"without_label": 3},
    }


def test_what_is_counted_while_the_catalog_is_away_is_told_once(world: World) -> None:
    """Of a query that runs by itself, and of one in a group."""
    fused = settled(world, 2)
    world.add()
    world.turn()
    (alone,) = world.running("query-3")
    alone.counts, fused.counts = {"late": 3}, {"query-1/too_large": 2}
    world.away = True
    for _ in range(60):
        world.step(0.3)
    assert world.counted == {}
    alone.counts = {"late": 1}
    world.away = False
    for _ in range(60):
        world.step(0.3)
    assert world.counted == {"query-1": {"too_large": 2}, "query-3": {"late": 4}}


def test_a_state_that_could_not_be_told_is_told_later(world: World) -> None:
    world.add()
    world.away = True
    for _ in range(10):
        world.step()
    world.away = False
    world.turn()
    world.away = True
    (alone,) = world.running("query-1")
    alone.crash()
    world.refused = {"query-1"}
    for _ in range(10):
        world.step()
    assert world.said["query-1"].state == "running"
    world.away = False
    world.step()
    assert world.said["query-1"].state in ("restarting", "failed")


def _each(do: Callable[[FakeQuery], object], *, fused: bool) -> Action:
    def act(world: World) -> None:
        for each in list(world.queries):
            if not each.over and (each in world.fused()) == fused:
                do(each)

    return act


def _first(do: Callable[[World, str], object]) -> Action:
    def act(world: World) -> None:
        if world.wanted:
            do(world, min(world.wanted))

    return act


def run(world: World, names: list[str]) -> None:
    """Let all that happen, and look whether everybody has got everything in the end."""
    world.add()
    world.add()
    for name in names:
        ACTIONS[name](world)
    world.settle()
    send(world)
    world.turn()
    world.turn()
    assert world.missed() == {}
    carried = [name for fused in world.fused() for name in members(fused)]
    wanted = sorted(world.wanted)
    assert sorted(carried) == (wanted if len(wanted) > 1 else []), "all run together"
    assert not [name for name in wanted if world.running(f"{name}-side")]
    for name, query in world.wanted.items():
        assert world.said[name].fingerprint == fingerprint(query), "as it is wanted"


def _set(name: str, value: object) -> Action:
    return lambda world: setattr(world, name, value)


def _return_starts(world: World) -> None:
    world.slow = False
    world.let_go()


ACTIONS: dict[str, Action] = {
    "send": send,
    "step": World.step,
    "a query is added": World.add,
    "a query is removed": _first(World.take),
    "a class is opened": _first(World.open_class),
    "fused runs deliver 0": _each(lambda each: each.flow("0"), fused=True),
    "fused runs deliver": _each(FakeQuery.flow_all, fused=True),
    "other runs deliver 1": _each(lambda each: each.flow("1"), fused=False),
    "other runs deliver": _each(FakeQuery.flow_all, fused=False),
    "batches of fused runs end": _each(FakeQuery.end_batch, fused=True),
    "batches of other runs end": _each(FakeQuery.end_batch, fused=False),
    "fused runs crash": _each(FakeQuery.crash, fused=True),
    "other runs crash": _each(FakeQuery.crash, fused=False),
    "the engine dies": World.begin_engine,
    "starts take long": _set("slow", True),
    "starts return": _return_starts,
    "plans take long": _set("plans", False),
    "plans are made": World.plan_all,
    "nothing can start": _set("refused", {f"query-{number}" for number in range(1, 9)}),
    "all can start": lambda world: world.refused.clear(),
    "a turn": World.turn,
    "a long turn": World.long_turn,
}
_OFTEN = ("step", "a turn", "a long turn", "a long turn", "send", "a query is added")


@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.lists(st.sampled_from([*ACTIONS, *_OFTEN, *_OFTEN]), min_size=10, max_size=40))
def test_each_topic_gets_all_from_when_it_is_told_to_be_fed(names: list[str]) -> None:
    with TemporaryDirectory() as folder:
        run(World(Path(folder)), names)
