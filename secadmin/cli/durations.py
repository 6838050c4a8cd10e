"""Durations and sizes as people write them: `5s`, `1h30m`, `1MB`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from catalog.errors import InvalidInput

_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# So many digits are always enough, and they fit every number type.
_NUMBER = "[0-9]{1,15}"
_PART = re.compile(rf"({_NUMBER}(?:\.{_NUMBER})?)(ms|s|m|h|d)")
_BYTES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "kib": 1024, "mib": 1024**2}
_SIZE = re.compile(rf"({_NUMBER})\s*([a-z]*)")


def milliseconds(text: str) -> int:
    """The duration in milliseconds. Raises InvalidInput.

    >>> milliseconds("1h30m")
    5400000
    """
    written = text.strip().lower()
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise InvalidInput(f"{text[:40]!r} is not a duration; write 500ms, 5s, 10m, 1h30m or 2d")
    return round(sum(float(number) * _MS[unit] for number, unit in parts))


def past_time(text: str, now: datetime) -> datetime:
    """The time that was so long ago, or at that date. Raises InvalidInput.

    >>> past_time("2h", datetime(2026, 1, 31, 12, tzinfo=UTC)).isoformat()
    '2026-01-31T10:00:00+00:00'
    >>> past_time("2026-01-31T10:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)).isoformat()
    '2026-01-31T10:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        found = None
    if found is not None and found.tzinfo is not None:
        return found
    try:
        return now - timedelta(milliseconds=milliseconds(text))
    except (InvalidInput, OverflowError):
        raise InvalidInput(
            f"{text[:40]!r} is not a time; write how long ago it was, such as 2h, or "
            "2026-01-31T10:00:00Z"
        ) from None


def byte_count(text: str) -> int:
    """The size in bytes. Raises InvalidInput.

    >>> byte_count("64KiB")
    65536
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _BYTES:
        raise InvalidInput(f"{text[:40]!r} is not a size; write 500000, 500kB, 64KiB or 1MB")
    return int(match[1]) * _BYTES[match[2]]


def duration_words(length_ms: int) -> str:
    """Milliseconds in the largest unit that divides them.

    >>> duration_words(90_000), duration_words(-1500)
    ('90s', '-1500ms')
    """
    for unit in ("d", "h", "m", "s"):
        if length_ms and length_ms % _MS[unit] == 0:
            return f"{length_ms // _MS[unit]}{unit}"
    return f"{length_ms}ms" if length_ms else "0s"
