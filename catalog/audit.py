"""The audit log: a chain of hashes that reveals a changed, missing or inserted entry.

Each entry's hash covers the entry and the hash before it. The hash needs a key that no database
holds, so a person who can write the tables cannot make another chain. Without the key, a person
can still cut off the end or restore an older state. The heads that are kept elsewhere reveal that.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.audit_head import GENESIS, Head, KeptHeads
from catalog.audit_key import AuditKey
from catalog.models import AuditEntry, AuditHead

HEAD_ID = 1
_USE = "entry"
# The actor of what the platform does by itself. No user can have this name.
PLATFORM = "(platform)"
# The actor of a call before its user is known. No user can have this name.
NOBODY = "(nobody)"
# Names of fields that would hold a secret. People read the log, so it must not contain any.
SECRET_KEYS = frozenset(
    {"password", "secret", "token", "password_hash", "token_hash", "authorization"}
)


MAX_NOTED = 8_000
"""How many characters `bounded` leaves of a value: conditions of policies may be much longer."""


class Outcome(StrEnum):
    """The result of an action."""

    ALLOWED = "allowed"
    DENIED = "denied"
    CHANGED = "changed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The number of checked entries, and the first problem: (number of its entry, message)."""

    entries: int
    first_problem: tuple[int, str] | None = None

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return self.first_problem is None


def append(
    session: Session, head: AuditHead, at: datetime, fields: Mapping[str, Any], key: AuditKey
) -> None:
    """Add an entry after the head and move the head. The caller has locked the head.

    `fields`: actor, action, object, outcome, reason, detail. Texts longer than their column are
    cut: the object in the middle, because it ends with the user or role that the action is about.
    Raises ValueError for a detail that is not JSON or seems to hold a secret.
    """
    _refuse_secrets(fields["detail"])
    entry = AuditEntry(
        seq=head.seq + 1,
        at=at,
        actor=_cut(_storable(fields["actor"]), 64),
        action=_cut(_storable(fields["action"]), 64),
        object=_both_ends(_storable(fields["object"]), 200),
        outcome=Outcome(fields["outcome"]).value,
        reason=_cut(_storable(fields["reason"]), 2_000),
        # Make the detail as the database returns it: keys are texts, tuples are lists.
        detail=json.loads(_canonical(dict(fields["detail"]))),
    )
    entry.hash = _hash(entry, head.hash, key)
    session.add(entry)
    head.seq, head.hash = entry.seq, entry.hash
    session.flush()


def bounded(value: object) -> object:
    """A value for the detail of an entry: if its JSON is long, the beginning and a digest of all.

    The digest shows whether a text that somebody has kept is the one that the entry is about.
    """
    text = _canonical(value)
    if len(text) <= MAX_NOTED:
        return value
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"beginning": text[:MAX_NOTED], "characters": len(text), "sha256": digest}


def head(session: Session) -> Head:
    """The head of the audit log. Raises LookupError if its row is missing."""
    row = session.get(AuditHead, HEAD_ID)
    if row is None:
        raise LookupError("the audit log has no head")
    return Head(row.seq, row.hash)


def is_made_with(session: Session, key: AuditKey) -> bool:
    """Whether the key made the first or the newest entry; also where there is none.

    If it made neither, it is another key. (One of them alone may have been changed.)
    """
    newest = head(session).seq
    ends = {1, newest - 1, newest}
    found = session.scalars(select(AuditEntry).where(AuditEntry.seq.in_(ends)))
    codes = {0: GENESIS}
    fits: list[bool] = []
    for entry in sorted(found, key=lambda each: each.seq):
        codes[entry.seq] = entry.hash
        if entry.seq in (1, newest) and entry.seq - 1 in codes:
            fits.append(_problem(entry, entry.seq, codes[entry.seq - 1], key) is None)
    return not fits or any(fits)


def verify(session: Session, key: AuditKey, kept: Collection[KeptHeads] = ()) -> AuditReport:
    """Check the whole chain. Each kept head must be part of it.

    Read the kept heads before the session takes its snapshot. Otherwise newer heads seem missing.
    """
    number, previous = 0, GENESIS
    expected = _by_number(kept)
    query = select(AuditEntry).order_by(AuditEntry.seq).execution_options(yield_per=1_000)
    for entry in session.scalars(query):
        number += 1
        problem = _problem(entry, number, previous, key)
        if problem is not None:
            return AuditReport(number - 1, (number, problem))
        for head, place in expected.pop(number, ()):
            if head.hash != entry.hash:
                return AuditReport(number, (number, f"the chain is another one than {place} says"))
        previous = entry.hash
        session.expunge(entry)
    row = session.get(AuditHead, HEAD_ID, populate_existing=True)
    if row is None:
        return AuditReport(number, (number + 1, "the head is missing"))
    if (row.seq, row.hash) != (number, previous):
        return AuditReport(number, (number + 1, "entries are missing at the end"))
    if expected:
        head, place = expected[max(expected)][0]
        missing = f"entries are missing: {place} says that there were {head.seq}"
        return AuditReport(number, (number + 1, missing))
    return AuditReport(number)


def _by_number(kept: Collection[KeptHeads]) -> dict[int, list[tuple[Head, str]]]:
    """The heads by number, each with its place. The head of an empty log is left out."""
    found: defaultdict[int, list[tuple[Head, str]]] = defaultdict(list)
    for each in kept:
        for head in each.heads:
            if head != Head(0, GENESIS):
                found[head.seq].append((head, each.place))
    return found


def _problem(entry: AuditEntry, number: int, previous: str, key: AuditKey) -> str | None:
    if entry.seq != number:
        return f"the entry is missing; the next one there is {entry.seq}"
    if entry.hash != _hash(entry, previous, key):
        return "the entry was changed, inserted or moved"
    return None


def _hash(entry: AuditEntry, previous: str, key: AuditKey) -> str:
    content = [
        entry.seq,
        entry.at.isoformat(timespec="microseconds"),
        *(entry.actor, entry.action, entry.object, entry.outcome, entry.reason),
        entry.detail,
        previous,
    ]
    return key.code(_USE, _canonical(content))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _storable(text: str) -> str:
    """The text in a form that every database accepts: no NUL, no lone surrogate."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _both_ends(text: str, limit: int) -> str:
    """The text without its middle if it is too long."""
    if len(text) <= limit:
        return text
    end = limit // 2
    return f"{text[: limit - 1 - end]}…{text[-end:]}"


def _refuse_secrets(value: object) -> None:
    if isinstance(value, Mapping):
        found = SECRET_KEYS & {str(key).lower() for key in value}
        if found:
            raise ValueError(f"the audit log never holds a {sorted(found)[0]}")
        for item in value.values():
            _refuse_secrets(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_secrets(item)
