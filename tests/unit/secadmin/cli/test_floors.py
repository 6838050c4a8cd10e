"""stream add --floors, stream floors and stream lower-floor."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from catalog.models import AuditEntry, Heartbeat
from catalog.wanted import generation, report_applied
from secadmin.control.floors import raise_floors
from tests.unit.secadmin.cli.people import NewUser
from tests.unit.secadmin.cli.running import Terminal
from tests.unit.secadmin.cli.service import Service


@pytest.fixture
def streams(admin: Terminal) -> tuple[str, str]:
    """A stream to which ann sends, with floors, and one that she may read."""
    admin.ok("schema", "add", "s", "n:bigint")
    admin.ok("stream", "add", "notes", "--schema", "s", "--floors")
    admin.ok("stream", "add", "secret", "--schema", "s")
    return "notes", "secret"


def grow(service: Service) -> None:
    """All steps by which floors rise, with engines that follow at once."""
    for _ in range(4):
        raise_floors(service.platform)
        service.feed_all()
        with service.catalog.bookkeeping() as session:
            for engine in session.scalars(select(Heartbeat.engine)).all():
                report_applied(session, engine, generation(session))


def test_a_floor_is_shown_and_lowered(
    admin: Terminal, service: Service, streams: tuple[str, str], new_user: NewUser
) -> None:
    notes, secret = streams
    ann = new_user("ann", "WRITER")
    admin.ok("grant", "WRITER", "VIEW OBJECT", "SEND", "stream", notes)
    assert admin.json("stream", "show", notes)["floored"] is True
    assert admin.json("stream", "floors", notes) == [
        {"user": "ann", "floor": [], "applied": True, "lowered": False}
    ]
    admin.ok("grant", "WRITER", "VIEW OBJECT", "READ TUPLE", "stream", secret)
    grow(service)
    (shown,) = admin.json("stream", "floors", notes)
    assert shown == {
        "user": "ann",
        "floor": [f"tuples of stream {secret}"],
        "applied": True,
        "lowered": False,
    }
    refused = ann.run("stream", "lower-floor", notes, "ann")
    assert refused.exit_code == 4, "declassifying is for who may change the system"
    assert ann.run("stream", "floors", notes).exit_code == 4
    assert "has no floor" in admin.ok("stream", "lower-floor", notes, "ann")
    (shown,) = admin.json("stream", "floors", notes)
    assert shown["lowered"] is True
    with service.catalog.read() as session:
        own = select(AuditEntry).where(AuditEntry.action == "declassify sender")
        entries = session.scalars(own.order_by(AuditEntry.seq)).all()
    assert [(each.actor, each.outcome) for each in entries] == [
        ("ann", "denied"),
        ("admin", "changed"),
    ]
    assert entries[-1].object == f"stream {notes}: ann"
    assert admin.run("stream", "lower-floor", secret, "ann").exit_code == 5


def test_nobody_knows_who_sends_to_a_shared_or_a_public_stream(admin: Terminal) -> None:
    admin.ok("schema", "add", "s", "n:bigint")
    line = ("stream", "add", "x", "--schema", "s", "--floors")
    assert "nobody knows the sender" in admin.run(*line, "--senders", "shared").output
    assert "no floors" in admin.run(*line, "--public").output
