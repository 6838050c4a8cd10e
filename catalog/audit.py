"""The audit log: a chain of hashes in which a changed, missing or inserted entry shows.

Each entry's hash covers the entry and the hash before it. Who can rewrite the whole table can also
write a new chain; a head that was pinned elsewhere (`head`, `verify`'s `expected_head`) shows that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.models import AuditEntry, AuditHead

GENESIS = "0" * 64
HEAD_ID = 1
# Who acts when no user does; no user can have this name.
PLATFORM = "(platform)"
# Who acts before anybody has proven to be a user.
NOBODY = "(nobody)"
# Keys under which somebody would put a secret; the log is read by people.
_SECRET_KEYS = frozenset(
    {"password", "secret", "token", "password_hash", "token_hash", "authorization"}
)


class Outcome(StrEnum):
    """What became of an action."""

    ALLOWED = "allowed"
    DENIED = "denied"
    CHANGED = "changed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry's number and hash, to be pinned outside the database."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """How many entries there are, and the first (number, what is wrong) that does not fit."""

    entries: int
    first_problem: tuple[int, str] | None = None

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return self.first_problem is None


def append(session: Session, head: AuditHead, at: datetime, fields: Mapping[str, Any]) -> None:
    """Add an entry behind the head, which the caller has locked, and move the head.

    `fields`: actor, action, object, outcome, reason, detail. Texts longer than their column are
    cut. Raises ValueError for a detail that is no JSON or seems to hold a secret.
    """
    _refuse_secrets(fields["detail"])
    entry = AuditEntry(
        seq=head.seq + 1,
        at=at,
        actor=_storable(fields["actor"], 64),
        action=_storable(fields["action"], 64),
        object=_storable(fields["object"], 200),
        outcome=Outcome(fields["outcome"]).value,
        reason=_storable(fields["reason"], 2_000),
        # As it comes back from the database: keys are texts, tuples are lists.
        detail=json.loads(_canonical(dict(fields["detail"]))),
    )
    entry.hash = _hash(entry, head.hash)
    session.add(entry)
    head.seq, head.hash = entry.seq, entry.hash
    session.flush()


def head(session: Session) -> Head:
    """The head to pin. Raises LookupError where the head row is missing."""
    row = session.get(AuditHead, HEAD_ID)
    if row is None:
        raise LookupError("the audit log has no head")
    return Head(row.seq, row.hash)


def verify(session: Session, expected_head: Head | None = None) -> AuditReport:
    """Walk the whole chain. `expected_head`, pinned earlier, must still be part of it."""
    number, previous, pinned = 0, GENESIS, expected_head is None or expected_head.seq == 0
    query = select(AuditEntry).order_by(AuditEntry.seq).execution_options(yield_per=1_000)
    for entry in session.scalars(query):
        number += 1
        problem = _problem(entry, number, previous)
        if problem is not None:
            return AuditReport(number - 1, (number, problem))
        if expected_head is not None and entry.seq == expected_head.seq:
            if entry.hash != expected_head.hash:
                return AuditReport(number, (number, "the chain is another one than was pinned"))
            pinned = True
        previous = entry.hash
        session.expunge(entry)
    row = session.get(AuditHead, HEAD_ID, populate_existing=True)
    if row is None:
        return AuditReport(number, (number + 1, "the head is missing"))
    if (row.seq, row.hash) != (number, previous):
        return AuditReport(number, (number + 1, "entries are missing at the end"))
    if not pinned:
        return AuditReport(number, (number + 1, "entries are missing that were pinned"))
    return AuditReport(number)


def _problem(entry: AuditEntry, number: int, previous: str) -> str | None:
    if entry.seq != number:
        return f"the entry is missing; the next one there is {entry.seq}"
    if entry.hash != _hash(entry, previous):
        return "the entry was changed, inserted or moved"
    return None


def _hash(entry: AuditEntry, previous: str) -> str:
    content = [
        entry.seq,
        entry.at.isoformat(timespec="microseconds"),
        *(entry.actor, entry.action, entry.object, entry.outcome, entry.reason),
        entry.detail,
        previous,
    ]
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _storable(text: str, limit: int) -> str:
    """The text as every database takes it: no NUL, no lone surrogate, cut to its column."""
    plain = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def _refuse_secrets(value: object) -> None:
    if isinstance(value, Mapping):
        found = _SECRET_KEYS & {str(key).lower() for key in value}
        if found:
            raise ValueError(f"the audit log never holds a {sorted(found)[0]}")
        for item in value.values():
            _refuse_secrets(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_secrets(item)
