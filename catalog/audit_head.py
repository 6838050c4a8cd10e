"""The head of the audit log: what is kept of it outside the database, so that its loss shows."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime

from catalog.audit_key import AuditKey
from catalog.errors import InvalidInput

GENESIS = "0" * 64
_USE = "head"
_WRITTEN = re.compile(r"(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry's number and hash, to be kept outside the database."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """The head that `str` wrote. Raises InvalidInput."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise InvalidInput("a head is NUMBER:HASH, as `secadmin audit head` prints it")
        return cls(int(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class KeptHeads:
    """Heads that were kept in one place, which messages name ("the file")."""

    place: str
    heads: frozenset[Head]

    @property
    def newest(self) -> int | None:
        """The highest number, None where there is none."""
        return max((head.seq for head in self.heads), default=None)


def seal(key: AuditKey, head: Head, at: datetime) -> bytes:
    """The head as a line without its end, with the time at which it is sent, authenticated."""
    when = at.isoformat(timespec="microseconds")
    fields = {"seq": head.seq, "hash": head.hash, "at": when}
    return json.dumps(fields | {"code": key.code(_USE, f"{head} {when}")}).encode()


def unseal(key: AuditKey, line: bytes) -> Head | None:
    """The head, or None where the line is not one that this key has authenticated."""
    try:
        fields = json.loads(line)
        head = Head.parse(f"{fields['seq']}:{fields['hash']}")
        when, code = fields["at"], fields["code"]
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInput):
        return None
    return head if key.fits(str(code), _USE, f"{head} {when}") else None
