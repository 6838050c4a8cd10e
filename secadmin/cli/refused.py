"""Records of a quarantine, shown byte by byte. They are not parsed and written again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from catalog.topics import REASON_HEADER
from secadmin.cli.safe_text import is_safe

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refused_record(value: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
    """A refused record as shown: its bytes, the reason, its place in the in topic, its time."""
    shown: dict[str, Any] = {"value": None if value is None else shown_bytes(value)}
    shown[REASON_HEADER] = headers[REASON_HEADER]
    numbers = {name: headers[name] for name in _NUMBERS if headers.get(name, "").isdecimal()}
    shown |= {name: int(text) for name, text in numbers.items()}
    if "timestamp" in shown:
        shown["timestamp"] = _time(shown["timestamp"])
    return shown


def refused_line(record: Mapping[str, Any]) -> str:
    """The same as a line: value, reason, sender:partition:offset and time, with tabs between."""
    parts = [record["value"] or "", _safe(str(record[REASON_HEADER]))]
    if all(name in record for name in _ORIGIN):
        parts.append(":".join(str(record[name]) for name in _ORIGIN))
    return "\t".join([*parts, *(str(record[name]) for name in ("timestamp",) if name in record)])


def shown_bytes(raw: bytes) -> str:
    r"""The bytes as text that a terminal only shows, and from which they can be had back.

    A backslash is two of them; each byte of what is no text, or would do something, is `\xNN`.
    """
    text = raw.decode("utf-8", "surrogateescape")
    return "".join(_shown(character) for character in text)


_ORIGIN = ("sender", "partition", "offset")
_NUMBERS = ("sender", "partition", "offset", "timestamp", "size")


def _shown(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if is_safe(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _safe(text: str) -> str:
    return shown_bytes(text.encode("utf-8", "surrogatepass"))


def _time(millis: int) -> str:
    try:
        at = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return str(millis)
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
