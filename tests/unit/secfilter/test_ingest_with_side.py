"""A group of ingest and its side run, whatever happens: each record is in lab exactly once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.runs import fingerprint
from secfilter.lab_notes import notes_of
from secfilter.newcomers import newcomers, topics_read
from secfilter.side_notes import SideNotes
from tests.lanes import number_of
from tests.unit.secfilter.ingest_world import (
    ACTIONS,
    NAME,
    SIDE,
    STEPS,
    TAKEN_OVER,
    come_to,
    do,
    new_world,
)

_WORLDS = number_of("INGEST_WORLDS", sample=200, long=2_000)


@settings(max_examples=_WORLDS, deadline=None, suppress_health_check=[*HealthCheck])
@given(st.lists(STEPS, min_size=15, max_size=70))
def test_each_record_is_in_lab_once(steps: list[tuple[str, int]]) -> None:
    with new_world() as world:
        for name, place in steps:
            ACTIONS[name](world, place)
            assert world.repeated() == [], name
        world.settle()
        assert world.repeated() == [] and world.missing() == set()
        assert not world.running(SIDE)
        wanted = [] if world.wanted is None else [world.wanted]
        assert [each.run for each in world.running(NAME)] == wanted


def test_a_new_sender_is_read_while_the_main_run_goes_on() -> None:
    with new_world() as world:
        main, side = come_to(world)
        assert main.asked and not main.over
        assert list(side.at) == ["in.s1.3"]
        assert world.reports[-1].fingerprint == fingerprint(world.wanted or main.run)
        do(world, "send:1", "side writes")
        assert world.topics.lab["lab.s1"] == [(3, 0)]


def test_the_main_run_takes_over_what_the_side_run_committed() -> None:
    with new_world() as world:
        _, side = come_to(world)
        do(world, "send:1", "side writes", "side's batch ends", "main's batch ends", "step")
        assert side.asked and not world.running(NAME), "the main run waits"
        assert world.reports[-1].state == "starting"
        do(world, "side's batch ends", "step", "step")
        (again,) = world.running(NAME)
        assert again.began["in.s1.3"] == {"0": 1}
        assert SideNotes(world.checkpoints).held(SIDE) == frozenset()
        assert not world.running(SIDE)


def test_a_further_sender_joins_the_side_run_which_goes_on() -> None:
    with new_world() as world:
        _, side = come_to(world)
        do(world, "send:1", "side writes", "add a sender:1", "step")
        assert side.asked
        do(world, "side's batch ends", "step", "step")
        (again,) = world.running(SIDE)
        assert again.began["in.s1.3"] == {"0": 1}
        assert again.at.keys() == {"in.s1.3", "in.s2.4"}


def test_lab_is_not_read_from_its_beginning_for_a_new_sender() -> None:
    with new_world() as world:
        do(world, "send", "send", "main writes", "main writes", "main's batch ends", "look")
        _, side = come_to(world)
        assert notes_of(side.checkpoint).lab_ends(side.began) == {"lab.s1": {"0": 2}}


def test_the_main_runs_notes_hide_nothing_of_the_side_run() -> None:
    """The main run notes lab's end where a tuple of the side run is not committed yet."""
    with new_world() as world:
        main, _ = come_to(world)
        do(world, "send:1", "side writes", "main's batch ends", "look", "look")
        assert notes_of(main.checkpoint).lab_ends(main.checkpoint.committed())
        do(world, "side crashes", "step", "step")
        world.settle()
        assert world.topics.lab["lab.s1"] == [(3, 0)]


def test_the_main_runs_notes_do_not_count_for_the_senders_that_it_takes_over() -> None:
    """Its note waits for its own senders alone."""
    with new_world() as world:
        come_to(world)
        do(world, "send:1", "side writes", "send:0", "look", "main's batch ends", "step")
        do(world, "side crashes", "step", "step", "main writes:0", "main's batch ends", "look")
        (main,) = world.running(NAME)
        assert main.checkpoint.committed()["in.s1.1"] == {"0": 1}
        do(world, "main crashes")
        world.settle()
        assert world.topics.lab["lab.s1"] == [(3, 0), (1, 0)]


def test_the_side_runs_notes_name_each_topic_that_it_writes() -> None:
    """A note from before it had the stream must not take the place of those it began with."""
    with new_world() as world:
        come_to(world)
        do(world, "send:1", "send:1", "look", "side writes", "add a sender:1", "step")
        do(world, "side's batch ends", "step", "step", "send:3", "side writes:0")
        do(world, "side's batch ends", "look", "side writes:1")
        assert world.topics.lab["lab.s2"] == [(4, 0)]
        do(world, "main's batch ends", "look", "look", "side crashes", "step", "step")
        world.settle()
        assert world.topics.lab["lab.s2"] == [(4, 0)]


def test_a_side_run_that_crashed_looks_for_what_it_had_written() -> None:
    with new_world() as world:
        come_to(world)
        do(world, "send:1", "side writes", "add a sender:0", "side crashes", "step", "step")
        (side,) = world.running(SIDE)
        assert side.at.keys() == {"in.s1.3", "in.s1.4"}
        world.settle()
        assert world.topics.lab["lab.s1"] == [(3, 0)]


def test_a_side_run_whose_batch_does_not_end_does_not_hold_up_the_main_run() -> None:
    with new_world() as world:
        _, side = come_to(world)
        do(world, "main's batch ends", "step")
        world.step(7)
        do(world, "step", "step")
        assert side.over and world.running(NAME)


def test_what_both_runs_refuse_is_counted() -> None:
    with new_world() as world:
        main, side = come_to(world)
        main.counts, side.counts = {"refused": 2}, {"refused": 3}
        do(world, "step", *TAKEN_OVER)
        world.step(10)
        assert sum(each.counted.get("refused", 0) for each in world.reports) == 5


def test_a_sender_that_the_main_run_leaves_out_is_not_new() -> None:
    with new_world() as world:
        do(world, "send", "main writes", "main's batch ends", "add a sender:1", "step")
        world.settle()
        world.faults.add("in.s1.1")
        do(world, "step", "main's batch ends", "step", "step")
        world.faults.clear()
        do(world, "step", "step")
        assert not world.running(SIDE), "the main run has its offsets"
        do(world, "main's batch ends", "step")
        (main,) = world.running(NAME)
        assert main.began["in.s1.1"] == {"0": 1}


def test_a_drained_sender_is_told_by_the_run_that_reads_it() -> None:
    with new_world() as world:
        _, side = come_to(world)
        do(world, "send:1", "side writes", "side's batch ends", "revoke:1", "look")
        assert 3 in world.senders.draining - world.senders.gone
        do(world, "look", "step")
        assert 3 in world.senders.gone and side.asked


@pytest.mark.parametrize("files", range(6))
def test_a_crash_while_the_side_run_is_taken_over(files: int) -> None:
    with new_world() as world:
        come_to(world)
        do(world, "send:1", "side writes", "look", "main's batch ends", "step", "side crashes")
        world.disk = files
        do(world, "step", "step", "the engine dies")
        world.settle()
        assert world.topics.lab["lab.s1"] == [(3, 0)]


@pytest.mark.parametrize("files", range(4))
def test_a_crash_while_the_side_run_begins(files: int) -> None:
    with new_world() as world:
        do(world, "look", "main's batch ends", "look", "add a sender:0")
        world.disk = files
        do(world, "step", "send:1", "side writes", "the engine dies")
        world.settle()
        assert world.topics.lab["lab.s1"] == [(2, 0)]


def test_new_senders_are_those_whose_topics_the_main_run_does_not_hold() -> None:
    with new_world() as world:
        come_to(world)
        wanted = world.wanted
        assert wanted is not None
        found = newcomers(wanted, {"in.s1.1"})
        assert found is not None and found.name == SIDE
        assert topics_read(found) == {"in.s1.3", "in.s2.2"}
        assert newcomers(wanted, topics_read(wanted)) is None
        assert newcomers(None, ()) is None
