"""Of the accesses of a user that policies show a stream only in windows, one reaches its output."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event

from catalog.models import Access, Object, Withdrawal
from catalog.role_view import AttributeRight, RoleView, SmallestWindow
from tests.unit.catalog.world import START
from tests.unit.secadmin.control.place import Place
from tests.unit.secadmin.control.test_views_of_accesses import policy, reads

MINUTE = SmallestWindow(60_000, 60_000)
COUNTS = RoleView(None, (AttributeRight("a", None, ("count",)),), MINUTE)


@pytest.fixture
def windows(place: Place) -> Place:
    """out1 and out3 have windows over in1, which is all that R's policy shows of it."""
    for output in ("out1", "out3"):
        reads(place, output, "stream in1", COUNTS)
    policy(place, COUNTS)
    return place


def access(place: Place, principal: str, output: str, *roles: str) -> Access:
    """A live access of Bob."""
    made = place.world.access("bob", f"output {output}", *(roles or ("R",)))
    place.world.edit(Access, made.id, principal=principal)
    return place.read(made)


def added(place: Place, output: str, seconds: int) -> None:
    """Let the output have been added so long after the start."""
    known = place.world.get_object(f"output {output}").id
    place.world.edit(Object, known, created_at=START + timedelta(seconds=seconds))


def ended(place: Place, access: Access, seconds: int) -> None:
    place.world.edit(Access, access.id, ended_at=START + timedelta(seconds=seconds))


def test_the_older_access_stays(windows: Place) -> None:
    first, second = access(windows, "one", "out1"), access(windows, "two", "out3")
    windows.settle()
    assert windows.topic(first) is not None and windows.topic(second) is None
    again = access(windows, "again", "out1")
    windows.settle()
    assert windows.topic(again) == windows.topic(first), "the same windows again"


def test_another_users_access_is_nothing_to_it(windows: Place) -> None:
    windows.world.user("eve", "R")
    first, second = windows.access(), windows.access("eve", "output out3")
    windows.settle()
    assert windows.topic(first) is not None and windows.topic(second) is not None


def test_an_access_that_shows_nothing_is_in_nobodys_way(windows: Place) -> None:
    first, second = access(windows, "one", "out1"), access(windows, "two", "out3")
    windows.revoke("SUBSCRIBE", "output out1")
    windows.settle()
    assert windows.topic(first) is None and windows.topic(second) is not None
    windows.world.grant("R", "SUBSCRIBE", "output out1")
    windows.settle(Access.id == first.id)
    assert windows.topic(first) is None, "now the newer one is in its way"


def test_what_is_taken_in_the_same_change_was_shown(windows: Place) -> None:
    first, second = access(windows, "one", "out1"), access(windows, "two", "out3")
    windows.settle(Access.id == first.id)
    windows.revoke("SUBSCRIBE", "output out1")
    windows.settle()
    assert windows.topic(first) is None and windows.topic(second) is None


@pytest.mark.parametrize(("end", "may"), [(5, True), (10, True), (11, False)])
def test_an_access_that_ended_before_counts_no_more(windows: Place, end: int, may: bool) -> None:
    added(windows, "out3", 10)
    first, second = access(windows, "one", "out1"), access(windows, "two", "out3")
    windows.settle(Access.id == first.id)
    ended(windows, first, end)
    windows.settle()
    assert (windows.topic(second) is not None) is may


@pytest.mark.parametrize(("done", "may"), [(5, True), (11, False), (None, False)])
def test_it_has_ended_when_nothing_more_can_arrive(
    windows: Place, done: int | None, may: bool
) -> None:
    added(windows, "out3", 10)
    first, second = access(windows, "one", "out1"), access(windows, "two", "out3")
    ended(windows, first, 2)
    at = None if done is None else START + timedelta(seconds=done)
    windows.world.add(
        Withdrawal(principal=first.principal, topic="out.out1.x", decided_at=START, done_at=at)
    )
    windows.settle()
    assert (windows.topic(second) is not None) is may


def test_who_sees_single_tuples_may_have_all_windows(windows: Place) -> None:
    windows.world.grant("S", "READ TUPLE", "stream in1")
    windows.world.member("bob", "S")
    both = [access(windows, name, name, "R", "S") for name in ("out1", "out3")]
    windows.settle()
    assert all(windows.topic(each) is not None for each in both)


def test_an_output_of_two_windows_is_for_nobody_who_may_have_one(place: Place) -> None:
    reads(place, "out1", "stream in1", COUNTS)
    reads(place, "out3", "stream in1", COUNTS)
    reads(place, "out3", "output out1")
    only = access(place, "only", "out3")
    policy(place, COUNTS)
    place.settle()
    assert place.topic(only) is None


def test_however_many_accesses_have_ended_they_are_looked_up_at_once(windows: Place) -> None:
    asked: list[object] = []

    @event.listens_for(windows.catalog.engine, "before_cursor_execute")
    def _note(*_: object) -> None:
        asked.append(1)

    counts = []
    for name, gone in (("few", 2), ("many", 40)):
        for number in range(gone):
            one = access(windows, f"{name}{number}", "out1")
            taken = Withdrawal(principal=one.principal, topic="t", decided_at=START)
            windows.world.add(taken)
            ended(windows, one, 5)
        newest = access(windows, name, "out1")
        windows.settle(Access.id == newest.id)
        asked.clear()
        windows.settle(Access.id == newest.id)
        counts.append(len(asked))
        assert windows.topic(newest) is not None
    assert counts[0] == counts[1]
