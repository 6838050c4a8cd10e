"""Policies decide which outputs and quarantines an access may read."""

from __future__ import annotations

import pytest

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.models import Access, Object, OutputInput, OutputView, PolicyRow, Role
from catalog.role_view import AttributeRight, RoleView
from catalog.schema import Type
from catalog.stored_form import to_stored
from tests.unit.secadmin.control.place import Place


def equal(text: str) -> Expression:
    return Call("=", (AttributeRef("a"), Literal(text, Type.STRING)))


X, Y = RoleView(equal("x")), RoleView(equal("y"))
ONLY_T = RoleView(None, (AttributeRight("t"),))
LESS = RoleView(X.rows, ONLY_T.attributes)


def policy(place: Place, view: RoleView, role: str = "R", stream: str = "in1") -> None:
    """A policy of the role on the stream."""
    place.world.role(role)
    place.world.add(
        PolicyRow(
            stream_id=place.world.get_object(f"stream {stream}").id,
            role_id=place.world.get(Role, role).id,
            name=f"p{role}{view.rows is None}",
            view=to_stored(view),
        )
    )


def reads(place: Place, output: str, relation: str, view: RoleView | None = None) -> None:
    """The output reads the stream or output, through the view if there is one."""
    own = place.world.get_object(f"output {output}").id
    other = place.world.get_object(relation).id
    place.world.add(OutputInput(output_id=own, relation_id=other))
    if view is not None:
        place.world.add(OutputView(output_id=own, stream_id=other, view=to_stored(view)))


def topic(place: Place, access: Access) -> str | None:
    place.settle()
    return place.topic(access)


def test_an_output_of_the_whole_stream_is_for_who_sees_the_whole(place: Place) -> None:
    access = place.access()
    reads(place, "out1", "stream in1")
    assert topic(place, access) is not None
    policy(place, X)
    assert topic(place, access) is None
    assert len(place.withdrawals()) == 1


@pytest.mark.parametrize(
    ("seen", "read", "may"),
    [(X, X, True), (X, LESS, True), (X, Y, False), (X, ONLY_T, False)],
)
def test_an_output_is_for_who_sees_what_it_reads(
    place: Place, seen: RoleView, read: RoleView, may: bool
) -> None:
    access = place.access()
    reads(place, "out1", "stream in1", read)
    policy(place, seen)
    assert (topic(place, access) is not None) is may


def test_an_output_over_an_output_is_read_down_to_the_streams(place: Place) -> None:
    place.world.user("eve", "R")
    direct, above = place.access(), place.access("eve", "output out3")
    reads(place, "out1", "stream in1", Y)
    reads(place, "out3", "output out1")
    reads(place, "out3", "stream in2")
    policy(place, Y)
    assert topic(place, direct) is not None and topic(place, above) is not None
    policy(place, X, stream="in2")
    assert topic(place, direct) is not None and topic(place, above) is None


def test_policies_of_one_role_hold_together(place: Place) -> None:
    access = place.access()
    reads(place, "out1", "stream in1", X)
    policy(place, X)
    assert topic(place, access) is not None
    policy(place, ONLY_T)
    assert topic(place, access) is None


@pytest.mark.parametrize(("read", "may"), [(X, True), (Y, True), (RoleView(), False)])
def test_one_of_several_roles_is_enough(place: Place, read: RoleView, may: bool) -> None:
    place.world.role("S")
    place.world.grant("S", "READ TUPLE", "stream in1")
    place.world.member("bob", "S")
    access = place.world.access("bob", "output out1", "R", "S")
    reads(place, "out1", "stream in1", read if read.restricts else None)
    policy(place, X, "R")
    policy(place, Y, "S")
    assert (topic(place, access) is not None) is may


def test_rows_of_several_roles_add_up(place: Place) -> None:
    place.world.role("S")
    place.world.grant("S", "READ TUPLE", "stream in1")
    place.world.member("bob", "S")
    alone, both = place.access(), place.world.access("bob", "output out1", "R", "S")
    assert isinstance(X.rows, Call) and isinstance(Y.rows, Call)
    reads(place, "out1", "stream in1", RoleView(Call("or", (X.rows, Y.rows))))
    policy(place, X, "R")
    policy(place, Y, "S")
    place.settle()
    assert place.topic(both) is not None and place.topic(alone) is None


def test_a_role_that_reads_nothing_of_the_stream_does_not_count(place: Place) -> None:
    """Its whole view, without a policy, is no right."""
    place.world.role("S")
    place.world.member("bob", "S")
    access = place.world.access("bob", "output out1", "R", "S")
    reads(place, "out1", "stream in1")
    policy(place, X, "R")
    assert topic(place, access) is None


def test_a_right_to_the_aggregate_is_no_right_to_more_tuples(place: Place) -> None:
    place.world.role("S")
    place.world.grant("S", "READ AGGREGATE", "stream in1")
    place.world.member("bob", "S")
    access = place.world.access("bob", "output out1", "R", "S")
    reads(place, "out1", "stream in1")
    policy(place, X, "R")
    assert topic(place, access) is None


def test_a_junior_role_counts(place: Place) -> None:
    place.world.role("SENIOR", juniors=["R"])
    place.world.user("eve", "SENIOR")
    access = place.world.access("eve", "output out1", "SENIOR")
    reads(place, "out1", "stream in1")
    assert topic(place, access) is not None
    policy(place, X, "R")
    assert topic(place, access) is None


def test_refused_records_are_for_who_sees_the_whole_stream(place: Place) -> None:
    access = place.access(what="stream in1", kind="quarantine")
    place.world.user("eve", "R")
    other = place.access("eve", "stream in2", kind="quarantine")
    assert topic(place, access) == "quarantine.in1"
    policy(place, X)
    assert topic(place, access) is None
    assert topic(place, other) == "quarantine.in2"


def test_who_owns_an_output_is_under_the_policies_too(place: Place) -> None:
    access = place.access()
    bob = place.read(access).user_id
    place.world.edit(Object, place.world.get_object("output out1").id, owner_id=bob)
    reads(place, "out1", "stream in1")
    policy(place, X)
    assert topic(place, access) is None
