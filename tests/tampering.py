"""What somebody with the catalog's database could do to the audit log, as SQL."""

from __future__ import annotations

COLUMNS = ("at", "actor", "action", "object", "outcome", "reason", "detail", "hash")
_OTHER_VALUES = {"detail": "'{\"x\": 1}'", "at": "datetime(at, '+1 second') || '.000000'"}


def deeds(number: int, last: int) -> dict[str, tuple[str, ...]]:
    """A column of the entry changed (each in its turn), the entry removed, left out, and moved.

    What is left out leaves no gap: the later ones move up. What is moved changes places with the
    next one, the last with the first. `last` is how many entries there are.
    """
    column = COLUMNS[number % len(COLUMNS)]
    changed = _OTHER_VALUES.get(column, f"{column} || '0'")
    removed = f"DELETE FROM audit WHERE seq = {number}"
    other = number % last + 1
    return {
        "changed": (f"UPDATE audit SET {column} = {changed} WHERE seq = {number}",),
        "removed": (removed,),
        "left out": (
            removed,
            f"UPDATE audit SET seq = 1 - seq WHERE seq > {number}",
            "UPDATE audit SET seq = -seq WHERE seq < 0",
        ),
        "moved": tuple(
            f"UPDATE audit SET seq = {new} WHERE seq = {old}"
            for old, new in ((number, 0), (other, number), (0, other))
        ),
    }


def cut_off(behind: int) -> tuple[str, ...]:
    """All entries behind that one removed, and the head put back: a chain that is whole."""
    newest = f"(SELECT hash FROM audit WHERE seq = {behind})"
    return (
        f"DELETE FROM audit WHERE seq > {behind}",
        f"UPDATE audit_head SET seq = {behind}, hash = {newest}",
    )


def emptied() -> tuple[str, ...]:
    """No entry is left, and the head is that of a new log."""
    return ("DELETE FROM audit", f"UPDATE audit_head SET seq = 0, hash = '{'0' * 64}'")
