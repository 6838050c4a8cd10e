"""Logins and transfers of a bank, and the matches that each role must get of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

SCHEMAS = {
    "logins": ("ts:timestamp!", "account:string!", "host:string", "ok:boolean!"),
    "transfers": (
        *("ts:timestamp!", "account:string!", "amount:double!"),
        *("target:string", "note:string"),
    ),
}
WATCHED_ABOVE, WATCHED_LATER, SUSPICIOUS_ABOVE = 500.0, 1_000.0, 1_000.0
# Nobody asks for what this account does. It moves time in the end.
_CLOCK, _SEEN_BY_ALL = "clock", 10_000.0


@dataclass(frozen=True, slots=True)
class Login:
    """One login, right or wrong."""

    ts: str
    account: str
    host: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer of money."""

    ts: str
    account: str
    amount: float
    target: str
    note: str


Event = Login | Transfer
# The account and the numbers of a match, as its output gives them.
Row = tuple[str, float, float]


def _at(minute: int, second: int) -> str:
    return f"2026-01-31T12:{minute:02}:{second:02}Z"


def events(first: int, last: int) -> list[Event]:
    """What three accounts do in these minutes, in the order of time."""
    found: list[Event] = []
    for minute in range(first, last):
        for number, account in enumerate(("anna", "ben", "cleo")):
            # Every second failed login is followed by one that succeeds.
            second = 10 * number
            found.append(Login(_at(minute, second), account, f"host{number}", ok=False))
            if (minute + number) % 2:
                found.append(Login(_at(minute, second + 2), account, f"host{number}", ok=True))
            amount = 100.0 * ((7 * minute + 5 * number) % 20)
            transfer = Transfer(_at(minute, second + 4), account, amount, "shop", "rent")
            found.append(transfer)
    return found


def clock(minute: int) -> list[Event]:
    """Events that move the time of both streams. They are in every role's view."""
    at = _at(minute, 59)
    return [Login(at, _CLOCK, "", ok=True), Transfer(at, _CLOCK, _SEEN_BY_ALL, "", "")]


def write(folder: Path, sent: Sequence[Event]) -> dict[str, Path]:
    """Write the events of each stream as JSON lines, for `secadmin produce`."""
    paths = {}
    for stream, kind in (("logins", Login), ("transfers", Transfer)):
        paths[stream] = folder / f"{stream}.jsonl"
        lines = (json.dumps(asdict(each)) for each in sent if isinstance(each, kind))
        paths[stream].write_text("".join(f"{line}\n" for line in lines))
    return paths


def suspicious(sent: Sequence[Event]) -> set[Row]:
    """A failed login, and no login that succeeds before a large transfer: within five minutes.

    Each failed login takes the first such transfer. In these events, a minute has one of each.
    """
    found = set()
    for account in _accounts(sent):
        own = [each for each in sent if each.account == account]
        for place, each in enumerate(own):
            if not isinstance(each, Login) or each.ok:
                continue
            amount = _first_large(own[place + 1 :], each)
            if amount is not None:
                found.add((account, amount, float(_minute(each))))
    return found


def _first_large(later: Sequence[Event], login: Login) -> float | None:
    for each in later:
        if (isinstance(each, Login) and each.ok) or _seconds(each) - _seconds(login) > 300:
            return None
        if isinstance(each, Transfer) and each.amount > SUSPICIOUS_ABOVE:
            return each.amount
    return None


def rising(sent: Sequence[Event], above: float) -> set[Row]:
    """Two watched transfers of an account behind each other, of which the second is larger.

    Those above this amount are watched.
    """
    found = set()
    for account in _accounts(sent):
        seen = [each for each in _transfers(sent, account) if each.amount > above]
        for one, two in pairwise(seen):
            if two.amount > one.amount and _seconds(two) - _seconds(one) <= 300:
                found.add((account, one.amount, two.amount))
    return found


def means(sent: Sequence[Event]) -> set[Row]:
    """The means of three transfers of an account behind each other, each transfer in one mean."""
    found = set()
    for account in _accounts(sent):
        own = _transfers(sent, account)
        for place in range(0, len(own) - 2, 3):
            three = [each.amount for each in own[place : place + 3]]
            found.add((account, round(sum(three) / 3, 6), 3.0))
    return found


def _transfers(sent: Sequence[Event], account: str) -> list[Transfer]:
    return [each for each in sent if isinstance(each, Transfer) and each.account == account]


def _accounts(sent: Sequence[Event]) -> list[str]:
    return sorted({each.account for each in sent} - {_CLOCK})


def _minute(event: Event) -> int:
    return int(event.ts[14:16])


def _seconds(event: Event) -> int:
    return 60 * _minute(event) + int(event.ts[17:19])
