"""How many records of a stream were refused: only who may read its quarantine is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from catalog.expression import Literal
from catalog.label_rule import BySender
from catalog.models import RunStatus, SchemaRow, StreamRow
from catalog.models import Session as LoginSession
from catalog.role_view import RoleView
from catalog.run_counts import refused_kind
from catalog.run_names import ingest_run_name
from catalog.schema import Type
from catalog.sessions import token_hash
from catalog.stored_form import to_stored
from secadmin.control.platform import Platform
from secadmin.control.role_texts import register_texts
from secadmin.control.settlement import Settlement
from secadmin.control.streams import show_stream
from secadmin.control.work import Caller
from tests.unit.catalog.world import START
from tests.unit.secadmin.control.place import SCHEMA, Place
from tests.unit.secadmin.control.test_views_of_accesses import policy

BOB = Caller("bob's token", "bob")
REFUSED = 4711


@pytest.fixture
def bob(place: Place) -> Place:
    """Bob is in a session, and may read all of in1. Of it so many records were refused."""
    world = place.world
    session = world.session("bob", "R")
    world.edit(LoginSession, session.id, token_hash=token_hash(BOB.token))
    schema = world.get_object("schema s").id
    world.add(SchemaRow(object_id=schema, definition=to_stored(SCHEMA)))
    world.add(
        RunStatus(
            name=ingest_run_name(1),
            state="running",
            message="",
            fingerprint="",
            updated_at=START,
            since=START,
            topics=[],
            counts={refused_kind(in1(place)): REFUSED},
            delivered_ms=None,
            through=False,
        )
    )
    return place


def in1(place: Place) -> int:
    return place.world.get_object("stream in1").id


def told(place: Place) -> int | None:
    """What bob is told, which is what the quarantine shows to an access of his."""
    access = place.access(what="stream in1", kind="quarantine")
    place.settle()
    parts = SimpleNamespace(catalog=place.catalog, clock=place.catalog.clock)
    found = show_stream(cast(Platform, parts), BOB, "in1").refused
    assert (found is not None) is (place.topic(access) is not None)
    return found


def test_who_may_read_the_quarantine_is_told(bob: Place) -> None:
    assert told(bob) == REFUSED


def test_a_policy_that_hides_a_part_hides_the_number(bob: Place) -> None:
    policy(bob, RoleView(Literal(False, Type.BOOLEAN)))
    assert told(bob) is None


@pytest.mark.parametrize(("roles", "number"), [("R | other", REFUSED), ("other", None)])
def test_a_condition_that_is_not_met_hides_the_number(
    bob: Place, roles: str, number: int | None
) -> None:
    bob.world.role("other")
    with bob.catalog.change("test") as change:
        register_texts(Settlement(change, change.now), in1(bob), [roles])
        change.audit("send", "stream in1")
    assert told(bob) == number


def test_without_the_right_to_read_there_is_no_number(bob: Place) -> None:
    bob.revoke("READ TUPLE", "stream in1")
    assert told(bob) is None


@pytest.mark.parametrize(("may_change", "number"), [(False, None), (True, REFUSED)])
def test_with_a_label_rule_it_needs_change_perm(
    bob: Place, may_change: bool, number: int | None
) -> None:
    bob.world.edit(StreamRow, in1(bob), label_rule=to_stored(BySender()))
    if may_change:
        bob.world.grant("R", "CHANGE PERM", "stream in1")
    assert told(bob) == number


def test_who_may_change_the_system_is_told_all_the_same(bob: Place) -> None:
    bob.revoke("READ TUPLE", "stream in1")
    bob.world.grant("R", "CHANGE SYSTEM", "system system")
    parts = SimpleNamespace(catalog=bob.catalog, clock=bob.catalog.clock)
    assert show_stream(cast(Platform, parts), BOB, "in1").refused == REFUSED
