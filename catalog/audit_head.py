"""The head of the audit log. Copies outside the database reveal a loss of entries."""

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
    """The number and hash of the newest entry, to be kept outside the database."""

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read the head that `str` wrote. Raises InvalidInput for any other text."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None:
            raise InvalidInput("a head is NUMBER:HASH, as `secadmin audit head` prints it")
        return cls(int(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class KeptHeads:
    """The heads that one place keeps. Messages use the name of the place, such as "the file"."""

    place: str
    heads: frozenset[Head]

    @property
    def newest(self) -> int | None:
        """The highest number of a head, or None if there is no head."""
        return max((head.seq for head in self.heads), default=None)


def seal(key: AuditKey, head: Head, at: datetime) -> bytes:
    """The head and its time of sending as one authenticated line, without a line end."""
    when = at.isoformat(timespec="microseconds")
    fields = {"seq": head.seq, "hash": head.hash, "at": when}
    return json.dumps(fields | {"code": key.code(_USE, f"{head} {when}")}).encode()


def unseal(key: AuditKey, line: bytes) -> Head | None:
    """The head in the line, or None if this key did not authenticate the line."""
    try:
        fields = json.loads(line)
        head = Head.parse(f"{fields['seq']}:{fields['hash']}")
        when, code = fields["at"], fields["code"]
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInput):
        return None
    return head if key.fits(str(code), _USE, f"{head} {when}") else None
