"""What reconciliation takes away is kept before it goes, under the locks of its topics."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from catalog.audit import PLATFORM
from catalog.errors import Unavailable
from catalog.models import AuditEntry, Withdrawal
from catalog.store import Catalog
from secadmin.control.unknown_acls import UnknownAcls
from secadmin.kafka.acl import ForeignAcl, GroupAcl, Operation, TopicAcl
from tests.unit.secadmin.control.test_alignment import Locks

TOPICS = {f"out.many.{number}" for number in range(40)}


def test_all_the_locks_are_held_or_none(catalog: Catalog) -> None:
    locks = Locks()
    with UnknownAcls(catalog, locks).hold(TOPICS):
        assert locks.held == TOPICS
    assert locks.held == set()
    locks.taken.add(max(TOPICS))
    with pytest.raises(Unavailable), UnknownAcls(catalog, locks).hold(TOPICS):
        pytest.fail("one is somebody else's")
    assert locks.held == set()


def test_what_is_taken_away_is_kept_and_noted(catalog: Catalog) -> None:
    long = "CN=" + "x" * 100
    reader = TopicAcl("output-1", "out.o.a", Operation.READ)
    wildcard = ForeignAcl("User:p", "*", "TOPIC", "out.", "PREFIXED", "READ", "ALLOW")
    fence = {"out.o.a": {"output-1", long}, "out.o.b": {"-"}}
    group = GroupAcl("output-1", "output-1.")
    UnknownAcls(catalog, Locks()).intend([group], {})
    cluster = ForeignAcl("User:q", "*", "GROUP", "g" * 300, "LITERAL", "READ", "ALLOW")
    UnknownAcls(catalog, Locks()).intend([reader, wildcard, group, cluster], fence)
    with catalog.read() as session:
        kept = {(row.topic, row.principal) for row in session.scalars(select(Withdrawal))}
        noted = select(AuditEntry).where(AuditEntry.action == "take away unknown ACL")
        entries = {row.object: row for row in session.scalars(noted)}
    assert kept == {("out.o.a", "output-1"), ("out.o.a", "-"), ("out.o.b", "-")}
    cut_off = f"group {'g' * 194}"
    assert entries.keys() == {"topic out.o.a", "topic out.", cut_off}
    assert entries[cut_off].detail["name"] == "g" * 300
    assert {entry.actor for entry in entries.values()} == {PLATFORM}
    assert entries["topic out.o.a"].detail["principal"] == "output-1"
    assert entries["topic out."].detail["pattern"] == "PREFIXED"
