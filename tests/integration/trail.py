"""The audit log of the scenario: every decision is in it, and every tampering shows."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import delete, func, insert, select, text

from catalog.audit import AuditReport, verify
from catalog.audit_head import KeptHeads, unseal
from catalog.audit_key import AuditKey
from catalog.migrations import upgrade
from catalog.models import AuditEntry, AuditHead
from catalog.settings import SecAdminSettings
from catalog.store import Catalog
from deploy.scenario.person import Person
from secadmin.control.head_file import HeadFile
from tests.tampering import cut_off, deeds

Decision = tuple[str, str, str, str]
CHANGED, ALLOWED, DENIED = "changed", "allowed", "denied"
# What the scenario decides, in its order: who, what, on what, with which outcome.
DECISIONS: tuple[Decision, ...] = (
    ("(platform)", "initialise", "system", CHANGED),
    ("admin", "login", "user admin", CHANGED),
    ("admin", "change password", "user admin", CHANGED),
    ("admin", "add user", "user joe", CHANGED),
    ("admin", "assign role", "user joe: ADMIN", CHANGED),
    ("joe", "login", "user joe", CHANGED),
    ("admin", "add role", "role INFO PROVIDER", CHANGED),
    ("admin", "grant", "system system: VIEW CATALOG of INFO PROVIDER", CHANGED),
    ("ed", "login", "user ed", CHANGED),
    ("al", "login", "user al", CHANGED),
    ("bob", "login", "user bob", CHANGED),
    ("admin", "grant", "system system: ADD QUERY of CUSTOMER1", CHANGED),
    ("joe", "add schema", "schema s", CHANGED),
    ("joe", "add stream", "stream in1", CHANGED),
    ("joe", "add stream", "stream in2", CHANGED),
    ("joe", "grant", "stream in1: VIEW OBJECT, READ TUPLE of CUSTOMER1", CHANGED),
    ("joe", "grant", "stream in2: VIEW OBJECT, READ TUPLE of CUSTOMER1", CHANGED),
    ("joe", "grant", "stream in1: VIEW OBJECT, SEND of INFO PROVIDER", CHANGED),
    ("joe", "grant", "stream in2: VIEW OBJECT, SEND of INFO PROVIDER", CHANGED),
    ("ed", "view catalog", "system", ALLOWED),
    ("al", "add query", "query q1", CHANGED),
    ("al", "access: output", "output out1", CHANGED),
    ("ed", "access: send", "stream in1", CHANGED),
    ("ed", "access: send", "stream in2", CHANGED),
    ("bob", "prepare access: output", "output out1", DENIED),
    ("bob", "view catalog", "system", ALLOWED),
    ("joe", "grant", "stream in1: VIEW OBJECT, READ TUPLE of CUSTOMER2", CHANGED),
    ("al", "grant", "output out1: VIEW OBJECT, SUBSCRIBE of CUSTOMER2", CHANGED),
    ("bob", "access: output", "output out1", CHANGED),
    ("joe", "revoke", "stream in1: READ TUPLE of CUSTOMER2", CHANGED),
    ("joe", "grant", "stream in1: READ TUPLE of CUSTOMER2", CHANGED),
)


@dataclass
class Commands:
    """Every command that somebody runs, with what it adds to the log under that user's name."""

    catalog: Catalog
    added: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """From now on, until `patch` is undone."""
        attempt = Person.attempt

        def watched(
            person: Person, *arguments: str, text: str = ""
        ) -> subprocess.CompletedProcess[str]:
            before = self._entries_of(person.name)
            done = attempt(person, *arguments, text=text)
            self.added.append((person.name, arguments, self._entries_of(person.name) - before))
            return done

        patch.setattr(Person, "attempt", watched)

    def _entries_of(self, actor: str) -> int:
        own = select(func.count()).select_from(AuditEntry).where(AuditEntry.actor == actor)
        with self.catalog.read() as session:
            return session.scalars(own).one()


def assert_all_stand_in(catalog: Catalog) -> None:
    """Each decision of the scenario is in the log, in its order."""
    columns = (AuditEntry.actor, AuditEntry.action, AuditEntry.object, AuditEntry.outcome)
    with catalog.read() as session:
        rows = session.execute(select(*columns).order_by(AuditEntry.seq)).all()
    logged = iter([tuple(row) for row in rows])
    for decision in DECISIONS:
        assert decision in logged, f"missing, or not in its place: {decision}"


def assert_tampering_shows(catalog: Catalog, scratch: Path, settings: SecAdminSettings) -> None:
    """Whatever is done to a copy of the log is found by verification.

    What is changed, removed or moved shows by itself; what is cut off, by the heads in the file.
    """
    key = AuditKey.load(settings.audit_key_file)
    copy = Catalog(f"sqlite:///{scratch / 'copy.db'}", key)
    try:
        count = _copy_log(catalog, copy)
        assert copy.verify_audit() == AuditReport(count)
        for number in range(1, count + 1):
            for deed in deeds(number, count).values():
                assert not _intact_after(copy, key, deed), deed
        heads = (unseal(key, line) for line in HeadFile(settings.audit_heads_file).read(10_000))
        kept = [KeptHeads("the file", frozenset(head for head in heads if head is not None))]
        assert copy.verify_audit(kept).intact
        with copy.bookkeeping() as session:
            for statement in cut_off(count - 60):
                session.execute(text(statement))
        assert copy.verify_audit().intact
        assert not copy.verify_audit(kept).intact
    finally:
        copy.close()


def _copy_log(source: Catalog, target: Catalog) -> int:
    """Make the tables there, with the source's log. How many entries it has."""
    upgrade(target.engine)
    entries, head = AuditEntry.__table__, AuditHead.__table__
    with source.read() as session:
        rows = session.execute(select(entries).order_by(AuditEntry.seq)).mappings().all()
        newest = session.execute(select(head)).mappings().one()
    with target.bookkeeping() as session:
        session.execute(delete(AuditHead))
        session.execute(insert(AuditHead), [dict(newest)])
        session.execute(insert(AuditEntry), [dict(row) for row in rows])
    return len(rows)


class _Undone(Exception):
    """Ends a transaction without a trace."""


def _intact_after(catalog: Catalog, key: AuditKey, deed: tuple[str, ...]) -> bool:
    """Whether verification finds nothing wrong; the deed is undone afterwards."""
    intact = False
    with suppress(_Undone), catalog.bookkeeping() as session:
        for statement in deed:
            session.execute(text(statement))
        intact = verify(session, key).intact
        raise _Undone
    return intact
