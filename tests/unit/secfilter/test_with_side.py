"""A main run and its side run, whatever the timing: a class misses nothing since it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Aggregation, Source, Window
from catalog.runs import FanOutClass, QueryRun
from secfilter.beside import fed_by, feed_all, lacking, side_name, side_run
from tests.lanes import number_of
from tests.outputs import with_output
from tests.plans import grouped, whole
from tests.unit.secfilter.side_world import (
    LONG_S,
    NAME,
    PARTITIONS,
    STREAM,
    FakeQuery,
    World,
    run_of,
)

_WORLDS = number_of("SIDE_WORLDS", sample=150, long=600)
Action = Callable[["World"], object]


def each_query(name: str, do: Callable[[FakeQuery], object]) -> Action:
    return lambda world: [do(each) for each in world.running(name)]


def _flow(partition: str) -> Callable[[FakeQuery], None]:
    return lambda query: query.flow(partition)


def _send(partition: str) -> Action:
    def send(world: World) -> None:
        world.log.ends[partition] += 1

    return send


def _set(name: str, value: bool) -> Action:
    return lambda world: setattr(world, name, value)


def _return_starts(world: World) -> None:
    world.slow = False
    world.let_go()


_MAIN, _SIDE, _LAB = NAME, side_name(NAME), "lab.s"
_MAIN_ENDS = "the main run's batch ends"
ACTIONS: dict[str, Action] = {
    "send to 0": _send("0"),
    "send to 1": _send("1"),
    "step": World.step,
    "open": World.open_class,
    "close": World.close_class,
    **{f"the main run delivers {p}": each_query(_MAIN, _flow(p)) for p in PARTITIONS},
    **{f"the side run delivers {p}": each_query(_SIDE, _flow(p)) for p in PARTITIONS},
    _MAIN_ENDS: each_query(_MAIN, FakeQuery.end_batch),
    "the side run's batch ends": each_query(_SIDE, FakeQuery.end_batch),
    "the main run crashes": each_query(_MAIN, FakeQuery.crash),
    "the side run crashes": each_query(_SIDE, FakeQuery.crash),
    "the engine dies": World.die,
    "a fence is not proven": _set("stands", True),
    "it is proven": _set("stands", False),
    "another query reads the output": _set("labelled", True),
    "starts take long": _set("slow", True),
    "starts return": _return_starts,
    "plans take long": _set("plans", False),
    "plans are made": World.plan_all,
    "wait": lambda world: world.step(LONG_S),
}


# What must happen often for the rest to matter.
_OFTEN = ("step", "step", "step", "send to 0", "open", "the main run delivers 0", _MAIN_ENDS)


@settings(max_examples=_WORLDS, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.lists(st.sampled_from([*ACTIONS, *_OFTEN]), min_size=10, max_size=50))
def test_each_class_gets_all_since_it_was_made(names: list[str]) -> None:
    world = World()
    world.step()
    for name in names:
        ACTIONS[name](world)
    world.settle()
    assert world.missed() == {}
    assert not world.running(_SIDE) and world.log.noted == frozenset(), "it has done its work"
    (main,) = world.running(_MAIN)
    assert main.run == world.wanted
    assert world.fed_from.keys() == fed_by(world.wanted)


def new_class(*, slow: bool = False) -> World:
    """A world whose main run is in its batch when a class is opened, and whose side run starts."""
    world = World()
    world.step()
    world.slow = slow
    ACTIONS["send to 0"](world)
    world.open_class()
    world.step()
    return world


def test_a_new_class_is_fed_while_the_main_run_goes_on() -> None:
    world = new_class()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    assert not main.asked
    assert [each.topic for each in side.run.classes] == ["class-1"]
    assert world.fed_from["class-1"] == {"0": 1, "1": 0}, "told at once"
    assert world.reports[-1].topics >= {"class-1", "first"}
    world.step()
    assert main.asked and not main.over, "the side run reads"
    main.flow("0")
    main.end_batch()
    world.step()
    assert side.over, "the main run began where the side run had begun"
    assert [each.topic for each in world.running(_MAIN)[0].run.classes] == ["first", "class-1"]


def made_before_it_is_seen() -> World:
    """A class is made, and a tuple comes before the engine sees the class."""
    world = World()
    world.step()
    ACTIONS["send to 0"](world)
    world.open_class()
    ACTIONS["send to 0"](world)
    return world


def test_a_side_run_begins_where_its_class_was_made() -> None:
    world = made_before_it_is_seen()
    world.step()
    (side,) = world.running(_SIDE)
    assert side.began == {"lab.s": {"0": 1, "1": 0}}


def test_a_side_run_that_has_begun_goes_back_to_where_a_further_class_was_made() -> None:
    world = new_class()
    (side,) = world.running(_SIDE)
    world.open_class()
    ACTIONS["send to 0"](world)
    side.flow("0")
    side.end_batch()
    for _ in range(3):
        world.step()
    (again,) = world.running(_SIDE)
    assert [each.topic for each in again.run.classes] == ["class-1", "class-2"]
    assert again.began == {"lab.s": {"0": 1, "1": 0}}


def test_a_main_run_that_takes_up_a_class_without_a_side_run_goes_back_to_where_it_was_made() -> (
    None
):
    world = made_before_it_is_seen()
    (main,) = world.running(_MAIN)
    main.flow("0")
    main.end_batch()
    main.crash()
    world.step(LONG_S)
    world.step(LONG_S)
    (again,) = world.running(_MAIN)
    assert again.began == {"lab.s": {"0": 1, "1": 0}}
    assert not world.running(_SIDE)
    again.flow("0")
    again.end_batch()
    again.crash()
    world.step(LONG_S)
    world.step(LONG_S)
    assert world.running(_MAIN)[0].began == {"lab.s": {"0": 2, "1": 0}}, "it has taken it up"


def test_an_output_that_others_begin_to_read_is_written_by_the_side_run() -> None:
    world = World()
    world.step()
    ACTIONS["send to 0"](world)
    ACTIONS["another query reads the output"](world)
    world.step()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    assert not main.run.labelled and side.run.labelled and not side.run.classes
    assert world.fed_from[_LAB] == {"0": 1, "1": 0}, "told at once"


def test_the_side_run_goes_on_until_it_is_where_the_main_run_began() -> None:
    world = new_class()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    world.step()
    ACTIONS["send to 1"](world)
    main.flow("1")
    main.end_batch()
    for _ in range(3):
        world.step()
    assert world.running(_MAIN)[0].began == {"lab.s": {"0": 0, "1": 1}}
    assert not side.over, "the tuple in 1 is not delivered to the new class"
    side.flow("1")
    side.end_batch()
    world.step()
    assert side.over


def test_what_is_not_told_yet_is_no_promise() -> None:
    world = new_class(slow=True)
    assert "class-1" not in world.fed_from, "its start has not returned"
    world.let_go()
    world.step()
    assert "class-1" in world.fed_from


def test_a_further_class_does_not_take_what_is_left_of_the_one_before() -> None:
    world = new_class()
    (main,) = world.running(_MAIN)
    world.step()
    ACTIONS["send to 1"](world)
    main.flow("1")
    main.end_batch()
    world.step()
    world.labelled = True
    world.open_class()
    world.step()
    world.step()
    world.step()
    (again,) = world.running(_SIDE)
    assert [each.topic for each in again.run.classes] == ["class-1", "class-2"]
    assert again.began == {"lab.s": {"0": 1, "1": 0}}, "what came to 1 is not delivered yet"


def test_a_side_run_goes_on_while_its_main_run_starts() -> None:
    world = new_class()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    world.step()
    world.slow = True
    main.end_batch()
    world.step()
    assert not world.running(_MAIN) and not side.over


def test_a_side_run_goes_on_until_its_main_run_is_planned() -> None:
    world = new_class()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    world.step()
    world.plans = False
    main.end_batch()
    for _ in range(3):
        world.step()
    assert world.running(_MAIN) and not side.over, "nothing else delivers to the new class"
    world.plan_all()
    world.step()
    assert side.over


def side_that_is_not_planned() -> World:
    """A world whose main run reads, and whose side run has started and does not read yet."""
    world = World()
    world.step()
    world.plans = False
    world.open_class()
    world.step()
    return world


def test_the_main_run_does_not_end_until_the_side_run_reads() -> None:
    world = side_that_is_not_planned()
    for _ in range(2):
        world.step()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    assert not main.asked, "the side run has the cores to start"
    side.planned = True
    world.step()
    assert main.asked


def test_a_side_run_that_does_not_read_holds_up_the_main_run_for_a_moment_only() -> None:
    world = side_that_is_not_planned()
    (main,) = world.running(_MAIN)
    world.step(9.0)
    world.open_class()
    world.step(0.5)
    assert not main.asked
    world.step(0.6)
    assert main.asked, "ten seconds after the first of both classes"


def test_a_query_that_feeds_nobody_yet_starts_anew_at_once() -> None:
    world = World(classes=(), plans=False)
    world.step()
    (main,) = world.running(_MAIN)
    world.open_class()
    world.step()
    assert main.over, "it had not begun to read"
    world.step()
    world.step()
    assert not world.running(_SIDE)
    assert world.running(_MAIN)[0].run == world.wanted


def test_a_query_that_reads_for_nobody_goes_on_beside_a_side_run() -> None:
    world = World(classes=())
    world.step()
    world.open_class()
    world.step()
    (main,) = world.running(_MAIN)
    assert not main.over and world.running(_SIDE)


def test_a_side_run_that_stood_still_goes_on_where_it_was() -> None:
    world = new_class()
    (main,), (side,) = world.running(_MAIN), world.running(_SIDE)
    ACTIONS["send to 1"](world)
    main.flow("1")
    world.stands = True
    world.step()
    assert side.over
    for _ in range(3):
        world.step()
    assert not world.running(_SIDE) and world.running(_MAIN)
    world.stands = False
    main.end_batch()
    world.step()
    world.step()
    (again,) = world.running(_SIDE)
    assert again.began == {"lab.s": {"0": 1, "1": 0}}


def test_a_further_class_begins_where_the_side_run_has_come() -> None:
    world = new_class()
    (side,) = world.running(_SIDE)
    world.open_class()
    world.step()
    assert side.over and "class-2" not in world.fed_from
    world.step()
    world.step()
    (again,) = world.running(_SIDE)
    assert [each.topic for each in again.run.classes] == ["class-1", "class-2"]
    assert "class-2" in world.fed_from


def test_a_side_run_is_for_another_class_of_the_same_stateless_plan() -> None:
    now, more = run_of("first"), run_of("first", "second")
    assert lacking(more, now) == {"second"}
    assert lacking(more, None) == frozenset(), "the next start takes it"
    assert lacking(now, more) == frozenset()
    assert lacking(with_output(more, labelled=True), now) == {"second", _LAB}
    assert lacking(now, with_output(now, labelled=True)) == frozenset()
    assert lacking(replace(more, plan=whole(Source(replace(STREAM, object_id=2)))), now) == set()
    windows = whole(grouped(Source(STREAM), Window(10, 10), (), (Aggregation("n", "count", None),)))
    assert lacking(replace(more, plan=windows), replace(now, plan=windows)) == frozenset()


_BOTH = run_of("first", "second")


@pytest.mark.parametrize(
    "changed",
    [
        replace(_BOTH, reaches={1: Label.of(0, 1)}),
        replace(_BOTH, sources=Label.of(0, 1)),
        with_output(_BOTH, classes=(FanOutClass("first", Clearance.of(0, 1)), _BOTH.classes[1])),
        run_of("first", "second", "third"),
        with_output(_BOTH, labelled=True),
    ],
)
def test_fed_is_what_gets_all_that_is_wanted(changed: QueryRun) -> None:
    main = run_of("first")
    assert feed_all(_BOTH, main, side_run(_BOTH, {"second"}))
    assert not feed_all(_BOTH, main, None)
    assert not feed_all(changed, main, side_run(changed, {"second"}))
