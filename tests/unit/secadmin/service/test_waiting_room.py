"""Whom a crowd puts out: its own, those that waited longest."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from secadmin.service.waiting_room import WaitingRoom


@dataclass(eq=False)
class Visitor:
    host: str
    out: bool = False

    def put_out(self) -> None:
        self.out = True


def test_a_crowd_costs_nobody_else_a_place() -> None:
    room = WaitingRoom(most=10, most_known=1)
    quiet = Visitor("a")
    room.enter(quiet)
    crowd = [Visitor("b") for _ in range(30)]
    for visitor in crowd:
        room.enter(visitor)
    assert not quiet.out
    assert [visitor.out for visitor in crowd] == [True] * 21 + [False] * 9
    assert len(room) == 10


def test_who_comes_back_waits_as_the_last() -> None:
    room = WaitingRoom(most=2, most_known=1)
    first, second, third = (Visitor("a") for _ in range(3))
    for visitor in (first, second, first, third):
        room.enter(visitor)
    assert [visitor.out for visitor in (first, second, third)] == [False, True, False]


def test_the_known_have_room_of_their_own_up_to_a_bound() -> None:
    room = WaitingRoom(most=1, most_known=2)
    known = [Visitor("a") for _ in range(3)]
    for visitor in known:
        room.enter(visitor, known=True)
    room.enter(Visitor("b"))
    room.enter(Visitor("b"))
    assert [visitor.out for visitor in known] == [False, False, True]


steps = st.tuples(st.integers(0, 19), st.sampled_from(["enter", "known", "leave"]))


@given(st.lists(steps, max_size=200))
def test_there_are_never_more_than_there_is_room_for(taken: list[tuple[int, str]]) -> None:
    room = WaitingRoom(most=5, most_known=3)
    visitors = [Visitor(f"host {number % 4}") for number in range(20)]
    inside: set[int] = set()
    for number, what in taken:
        visitors[number].out = False
        if what == "leave":
            room.leave(visitors[number])
            inside.discard(number)
        else:
            room.enter(visitors[number], known=what == "known")
            inside.add(number)
        inside = {each for each in inside if not visitors[each].out}
        assert len(room) == len(inside) <= 8
