"""Which runs nothing will compute again: what they keep is deleted, and no more than that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from catalog.models import DeliveryClass, ExecutionRow, Object, OutputRow
from catalog.past_runs import past_runs
from catalog.run_names import query_run_name
from tests.unit.catalog.test_moves import Alike
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World


class Kept(Alike):
    """Outputs with an execution each, of which an engine has checkpoints."""

    def past(self, *names: str) -> dict[str, Sequence[str]]:
        with self.world.catalog.read() as session:
            return dict(past_runs(session, names or [self.run(name) for name in self.ids]))

    def remove(self, name: str) -> None:
        self.world.edit(Object, self.ids[name], removed_at=START)


@pytest.fixture
def kept(world: World) -> Kept:
    filled = Filled(world)
    filled.stream("in1", 1, 0, 1)
    made = Kept(filled)
    for name in ("a", "b"):
        made.add(name)
    return made


def test_the_run_of_a_removed_output_is_past(kept: Kept) -> None:
    own = kept.run("a")
    every = [own, f"{own}-side", f"{own}-7", f"{own}-7-side", kept.run("b"), "query-999"]
    assert kept.past(*every) == {}
    kept.remove("a")
    assert kept.past(*every) == dict.fromkeys(every[:4], ())


def test_a_stopped_query_begins_where_it_was(kept: Kept) -> None:
    kept.stop("a")
    assert kept.past() == {}


def test_an_execution_is_needed_by_each_output_that_has_it(kept: Kept) -> None:
    kept.world.edit(OutputRow, kept.ids["b"], execution_id=kept.ids["a"])
    kept.remove("a")
    assert kept.past() == {kept.run("b"): ()}
    kept.remove("b")
    assert kept.past() == {kept.run("a"): (), kept.run("b"): ()}


def test_an_execution_is_needed_by_an_output_that_moves_to_it(kept: Kept) -> None:
    kept.remove("a")
    kept.world.edit(OutputRow, kept.ids["b"], moves_to=kept.ids["a"])
    assert kept.past() == {}


def test_a_class_with_an_engine_of_its_own_needs_its_execution(kept: Kept) -> None:
    own = kept.filled.delivery("b", "b2", "2").id
    kept.world.edit(DeliveryClass, own, execution_id=kept.ids["a"])
    kept.remove("a")
    of_class = query_run_name(kept.ids["a"], own)
    assert kept.past(of_class, kept.run("a")) == {}
    kept.world.edit(DeliveryClass, own, removed_at=START)
    assert kept.past(of_class, kept.run("a")) == {of_class: (), kept.run("a"): ()}


def test_the_run_of_a_deleted_class_is_past_and_no_other(kept: Kept) -> None:
    gone = kept.filled.delivery("a", "a2", "2").id
    names = [query_run_name(kept.ids["a"], each) for each in (gone, gone + 1)]
    kept.world.edit(DeliveryClass, gone, closed_at=START)
    assert kept.past(*names, kept.run("a")) == {}
    kept.world.edit(DeliveryClass, gone, removed_at=START)
    assert kept.past(*names, kept.run("a")) == {names[0]: ()}


def test_what_begins_with_its_state_is_named(kept: Kept) -> None:
    kept.remove("a")
    kept.edit("b", copy_of=kept.ids["a"])
    side = f"{kept.run('a')}-side"
    assert kept.past(kept.run("a"), side) == {kept.run("a"): [kept.run("b")], side: ()}
    kept.remove("b")
    assert kept.past() == {kept.run("a"): (), kept.run("b"): ()}


def test_in_another_catalog_nothing_is_past(kept: Kept) -> None:
    kept.remove("a")
    with kept.world.catalog.bookkeeping() as session:
        unknown = max(each.id for each in session.query(ExecutionRow)) + 1
    assert kept.past(query_run_name(unknown)) == {}
