"""The judge of rights that change while data flow: it sees what leaks, what is lost and what races.

`tests/integration/test_serial_rights.py` uses it on the whole platform.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count

import pytest

from tests.integration.serial.judging import Call, Span, due, leaks, spans_of
from tests.integration.serial.model import MARKS, Entry, Mark, Model
from tests.integration.service.racing.history import NotSerial
from tests.integration.service.revocations.ledger import Reception

DOCTORS_OF_A = Mark("doctor", "A")
OF_DOCTORS = MARKS.index(DOCTORS_OF_A)
P = "p1"


Row = tuple[float, str, str, str, Mapping[str, object]]


def log(*rows: Row) -> list[Entry]:
    return [Entry(seq, *row) for seq, row in enumerate(rows, start=1)]


def prepared() -> list[Row]:
    """Ann, with a role that is senior to doctor, has level A and an access that is kept."""
    return [
        (1, "admin", "grant", "stream vitals: READ TUPLE of own", {}),
        (1, "admin", "grant", "output each: VIEW OBJECT, SUBSCRIBE of own", {}),
        (1, "admin", "add junior role", "role own: doctor", {}),
        (1, "admin", "assign role", "user ann: own", {}),
        (1, "admin", "set level", "user ann: COI", {"level": "A", "by_choice": False}),
        (2, "ann", "login", "user ann", {"session": 7, "roles": ["own"]}),
        (3, "ann", "access: output", "output each", {"principal": P, "keep": True}),
    ]


LOGGED_IN = Call("ann", "login", 1.9, 2.1, "token")
SUBSCRIBED = Call("ann", "access: output", 2.9, 3.2, "token", P)


def spans(*more: Row, calls: Sequence[Call] = ()) -> Mapping[tuple[str, Mark], Sequence[Span]]:
    found, _ = spans_of(log(*prepared(), *more), [LOGGED_IN, SUBSCRIBED, *calls])
    return found


TAKE: Row = (10.2, "boss", "take level", "user ann: COI", {})
TAKING = Call("boss", "take level", 10.0, 11.0)
SET: Row = (20.1, "boss", "set level", "user ann: COI", {"level": "T", "by_choice": False})
SETTING = Call("boss", "set level", 20.0, 20.5)


def test_a_span_begins_and_ends_with_the_calls() -> None:
    found = spans(TAKE, SET, calls=(TAKING, SETTING))
    assert found[P, DOCTORS_OF_A] == [Span(2.9, 3.2, 10.0, 11.0), Span(20.0, 20.5)]
    assert found[P, Mark("doctor", "B")] == [Span(20.0, 20.5)]
    assert found[P, Mark("doctor | nurse", "⊥")] == [Span(2.9, 3.2)]
    assert not found[P, Mark("doctor & nurse", "A")]


@pytest.mark.parametrize(
    ("sent", "came", "leaked"),
    [
        (5.0, 5.1, False),
        # Sent while the call was under way, and what a client's library had already.
        (10.9, 11.5, False),
        (10.9, 19.9, False),
        (1.0, 2.0, True),
        (11.1, 12.0, True),
        # What was hidden when it came may be read when the right is back.
        (12.0, 20.2, False),
        (12.0, 19.9, True),
        (2.0, 2.5, True),
    ],
)
def test_what_comes_outside_of_all_spans_is_a_leak(sent: float, came: float, leaked: bool) -> None:
    found = spans(TAKE, SET, calls=(TAKING, SETTING))
    times = [math.nan] * OF_DOCTORS + [sent]
    got = [Reception("out.each.x", OF_DOCTORS, came)]
    assert (leaks(found, P, got, times) == got) is leaked
    assert leaks(found, "nobody", got, times) == got


@pytest.mark.parametrize(
    ("sent", "reference", "fed", "has_to_come"),
    [
        (5.0, 5.5, (4.0, 4.1), True),
        # Before it was told to be fed.
        (4.05, 5.5, (4.0, 4.1), False),
        # Told before the right was given, and while it was being taken.
        (5.0, 5.5, (3.0, 3.1), False),
        (10.5, 11.0, (9.9, 10.1), False),
        # It came to who keeps all rights just before the right was taken, or never.
        (8.0, 8.9, (4.0, 4.1), False),
        (8.0, None, (4.0, 4.1), False),
        # There is another span.
        (21.0, 22.0, (20.6, 20.7), True),
    ],
)
def test_what_must_come(
    sent: float, reference: float | None, fed: tuple[float, float], has_to_come: bool
) -> None:
    found = spans(TAKE, SET, calls=(TAKING, SETTING))
    times = [math.nan] * OF_DOCTORS + [sent]
    came = {} if reference is None else {OF_DOCTORS: reference}
    assert due(found, P, [fed], times, came, 2.0) == ({OF_DOCTORS} if has_to_come else set())


def test_calls_of_one_user_at_once_allow_the_most() -> None:
    """Which of both it was, nobody knows."""
    first, second = Call("boss", "take level", 10.0, 10.4), Call("boss", "take level", 10.1, 12.0)
    found = spans(TAKE, calls=(first, second))
    assert found[P, DOCTORS_OF_A] == [Span(2.9, 3.2, 10.0, 12.0)]


def test_a_session_at_a_level_and_its_end() -> None:
    at = {"session": 8, "roles": ["own"], "level": ["COI=A"]}
    given = {"principal": "p2", "keep": False}
    rows = [
        *prepared(),
        (4, "boss", "set level", "user ann: COI", {"level": "T", "by_choice": False}),
        (5, "ann", "login", "user ann", at),
        (6, "ann", "access: output", "output each", given),
    ]
    calls = [LOGGED_IN, SUBSCRIBED, Call("ann", "login", 4.9, 5.1, "low")]
    calls.append(Call("ann", "access: output", 5.9, 6.1, "low", "p2"))
    _, model = spans_of(log(*rows), calls)
    assert {mark.company for mark in model.shown(P)} == {"A", "B", "T", "⊥"}
    assert {mark.company for mark in model.shown("p2")} == {"A", "⊥"}
    rows.append((7, "boss", "set level", "user ann: COI", {"level": "B", "by_choice": False}))
    _, model = spans_of(log(*rows), calls)
    assert {mark.company for mark in model.shown("p2")} == {"⊥"}
    rows.append((8, "ann", "deactivate role", "role own", {"session": 8}))
    _, model = spans_of(log(*rows), calls)
    assert set(model.accesses) == {P}


CHOICE: Mapping[str, object] = {"level": None, "by_choice": True}
CHOSEN: Mapping[str, object] = {"chosen": {"COI": "A"}}


@pytest.mark.parametrize(
    "rows",
    [
        [("boss", "remove junior role", "role own: nurse", {})],
        [("boss", "unassign role", "user ann: doctor", {})],
        [("ann", "choose company", "conflict class COI", CHOSEN)],
        [
            ("boss", "set level", "user ann: COI", CHOICE),
            ("ann", "choose company", "conflict class COI", CHOSEN),
            ("ann", "choose company", "conflict class COI", {"chosen": {"COI": "B"}}),
        ],
        [
            ("boss", "set level", "user ann: COI", CHOICE),
            ("ann", "choose company", "conflict class COI", CHOSEN),
            ("boss", "take level", "user ann: COI", {}),
        ],
        [("boss", "reset wall", "user ann: COI", {"was": "A"})],
        [("ann", "end access", "access p9", {})],
        [("ann", "logout", "user ann", {"session": 70})],
        [("ann", "deactivate role", "role nurse", {"session": 7})],
    ],
)
def test_what_does_not_follow_is_no_serial_history(
    rows: list[tuple[str, str, str, Mapping[str, object]]],
) -> None:
    times = count(10)
    with pytest.raises(NotSerial):
        spans(*((float(next(times)), *row) for row in rows))


def test_a_reset_ends_all_and_lets_choose_again() -> None:
    rows = [
        *prepared(),
        (4, "boss", "set level", "user ann: COI", CHOICE),
        (5, "ann", "choose company", "conflict class COI", CHOSEN),
    ]
    _, model = spans_of(log(*rows), [LOGGED_IN, SUBSCRIBED])
    assert DOCTORS_OF_A in model.shown(P)
    rows.append((6, "boss", "reset wall", "user ann: COI", {"was": "A"}))
    _, model = spans_of(log(*rows), [LOGGED_IN, SUBSCRIBED])
    assert model.chosen == {"ann": None} and not model.accesses
    assert isinstance(model, Model)
