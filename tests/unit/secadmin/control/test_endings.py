"""When an access ends, what is taken from it, and which accesses a change is about."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import ColumnElement, select

from catalog.models import (
    Access,
    Membership,
    Object,
    QueryAsRole,
    Session,
    User,
    Withdrawal,
)
from secadmin.control.settlement import (
    Settlement,
    of_named_above,
    of_objects,
    of_role,
    of_senders,
    of_sessions,
    of_user,
)
from tests.unit.secadmin.control.place import Place

ENDS: dict[str, Callable[[Place, Access], object]] = {
    "the session ended": lambda place, access: place.world.edit(
        Session, access.session_id, ended_at=place.catalog.clock()
    ),
    "the session's time is over": lambda place, access: place.world.edit(
        Session, access.session_id, expires_at=place.catalog.clock()
    ),
    "the user is locked": lambda place, access: place.world.edit(User, access.user_id, locked=True),
    "the object is removed": lambda place, access: place.world.edit(
        Object, access.object_id, removed_at=place.catalog.clock()
    ),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_access_ends(place: Place, end: Callable[[Place, Access], object]) -> None:
    login = place.world.session("bob", "R")
    access, kept = place.access(session_id=login.id), place.access("joe")
    place.world.member("joe", "R")
    place.settle()
    before = str(place.topic(access))
    end(place, access)
    place.catalog.clock.advance(seconds=1)  # type: ignore[attr-defined]
    assert place.settle(of_user(place.world.get(User, "bob"))) == {before}
    assert place.topics(access) == {}
    assert place.read(access).ended_at == place.catalog.clock()
    assert place.withdrawals() == {(access.principal, before)}
    assert place.topic(kept) == before


def test_an_access_that_lost_a_role_ends(place: Place) -> None:
    place.world.role("S")
    place.world.member("bob", "S")
    with_both = place.world.access("bob", "output out1", "R", "S")
    access = place.access()
    place.settle()
    with place.catalog.bookkeeping() as session:
        role = place.world.get_role("S")
        session.delete(session.get_one(Membership, (with_both.user_id, role)))
    place.settle()
    assert place.read(with_both).ended_at is not None
    assert place.read(access).ended_at is None and place.topic(access) is not None


def test_what_has_ended_is_not_settled_again(place: Place) -> None:
    access = place.access(ended_at=place.catalog.clock())
    assert place.settle() == set()
    assert place.topic(access) is None


def test_what_is_taken_and_not_done_is_taken_up(place: Place) -> None:
    access, other = place.access(), place.access("joe")
    place.world.member("joe", "R")
    place.settle()
    before = place.topic(access)
    now = place.catalog.clock()
    rows = (
        (access.principal, "out.undone", None),
        (access.principal, "out.done", now),
        (other.principal, "out.another's", None),
    )
    for principal, topic, done_at in rows:
        place.world.add(
            Withdrawal(principal=principal, topic=topic, decided_at=now, done_at=done_at)
        )
    mine = of_user(place.world.get(User, "bob"))
    assert place.settle(mine) == {"out.undone"}
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.end(change.session.get_one(Access, access.id))
        change.audit("end", "test")
    assert settlement.topics == {before, "out.undone"}
    assert place.read(access).ended_at == now
    with place.catalog.change("test") as change:
        settlement = Settlement(change, change.now)
        settlement.end(change.session.get_one(Access, other.id))
        change.audit("end", "test")
    assert settlement.topics == {before, "out.another's"}
    # Nobody else would ask for what an ended access has lost.
    assert place.settle(mine) == {before, "out.undone"}


def test_which_accesses_a_change_is_about(place: Place) -> None:
    place.world.role("SENIOR", juniors=["R"])
    place.world.user("eve", "SENIOR")
    login = place.world.session("eve", "SENIOR")
    direct = place.access()
    senior = place.world.access("eve", "output out2", "SENIOR", session_id=login.id)
    place.world.user("mia", "OTHER")
    other = place.world.access("mia", "output out1", "OTHER")
    sending = place.access("eve", "stream in1", kind="send")
    objects = [place.world.get_object(f"output {name}").id for name in ("out1", "out2")]

    def found(which: ColumnElement[bool]) -> set[int]:
        with place.catalog.read() as session:
            return set(session.scalars(select(Access.id).where(which)))

    with place.catalog.change("test") as change:
        change.audit("look", "test")
        of_r = of_role(change, place.world.get_role("R"))
        of_senior = of_role(change, place.world.get_role("SENIOR"))
        of_nobody = of_role(change, 999)
        aggregates = of_senders(change, place.world.get_role("R"))
        aggregates_of_senior = of_senders(change, place.world.get_role("SENIOR"))
    assert found(of_r) == {direct.id, senior.id, sending.id}
    assert found(of_senior) == {senior.id}
    assert found(of_nobody) == set()
    assert found(aggregates) == {direct.id, senior.id}
    assert found(aggregates_of_senior) == {senior.id}
    assert found(of_user(place.world.get(User, "eve"))) == {senior.id, sending.id}
    assert found(of_objects(objects[0])) == {direct.id, other.id}
    assert found(of_objects(*objects)) == {direct.id, other.id, senior.id}
    assert found(of_sessions(login.id)) == {senior.id}


def test_which_accesses_are_to_queries_that_name_a_role_or_a_senior_one(place: Place) -> None:
    for name, juniors in (("SENIOR", ["R"]), ("TOP", ["SENIOR"]), ("OTHER", [])):
        place.world.role(name, juniors)
    access = place.access()
    query = place.world.get_object("query q").id

    def found(role: str) -> set[int]:
        with place.catalog.change("test") as change:
            change.audit("look", "test")
            which = of_named_above(change, place.world.get_role(role))
            return set(change.session.scalars(select(Access.id).where(which)))

    assert found("R") == set()
    place.world.add(QueryAsRole(query_id=query, role_id=place.world.get_role("SENIOR")))
    assert found("R") == found("SENIOR") == {access.id}
    assert found("TOP") == found("OTHER") == set()
