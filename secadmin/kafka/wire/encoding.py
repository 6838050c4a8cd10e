"""The primitive types of the Kafka protocol.

The `compact` ones, and the tagged fields, belong to the flexible versions of requests alone.
"""

from __future__ import annotations

import struct


def int8(value: int) -> bytes:
    """A signed byte."""
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    """A signed 16-bit integer."""
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    """A signed 32-bit integer. The length before an array has this form too."""
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    """A signed 64-bit integer."""
    return struct.pack(">q", value)


def float64(value: float) -> bytes:
    """A floating-point number of 64 bits."""
    return struct.pack(">d", value)


def string(value: str | None) -> bytes:
    """A text with its length, or null."""
    if value is None:
        return int16(-1)
    data = value.encode()
    return int16(len(data)) + data


def octets(value: bytes) -> bytes:
    """Bytes with their length."""
    return int32(len(value)) + value


NO_TAGS = b"\0"
"""The end of a structure of a flexible version, without any tagged field."""


def compact_length(count: int) -> bytes:
    """The length before a compact array or text: one more than it is, in groups of seven bits."""
    rest, groups = count + 1, b""
    while rest > 0x7F:
        groups += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return groups + bytes([rest])


def compact_string(value: str) -> bytes:
    """A text with its length in the compact form."""
    data = value.encode()
    return compact_length(len(data)) + data


class Reader:
    """Reads primitive types from an answer, in order. Raises ValueError if it ends too soon."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int8(self) -> int:
        """A signed byte."""
        return int.from_bytes(self._take(1), signed=True)

    def int16(self) -> int:
        """A signed 16-bit integer."""
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        """A signed 32-bit integer."""
        return int.from_bytes(self._take(4), signed=True)

    def int64(self) -> int:
        """A signed 64-bit integer."""
        return int.from_bytes(self._take(8), signed=True)

    def string(self) -> str | None:
        """A text, or None for null."""
        length = self.int16()
        return None if length < 0 else self._take(length).decode()

    def octets(self) -> bytes:
        """Bytes. For null there are no bytes."""
        return self._take(max(0, self.int32()))

    def compact_length(self) -> int:
        """The length of a compact array or text; that of null is -1."""
        return self._unsigned() - 1

    def compact_string(self) -> str | None:
        """A text in the compact form, or None for null."""
        length = self.compact_length()
        return None if length < 0 else self._take(length).decode()

    def tags(self) -> None:
        """Pass over the tagged fields of a structure."""
        for _ in range(self._unsigned()):
            self._unsigned()
            self._take(self._unsigned())

    def _unsigned(self) -> int:
        value = 0
        for group in range(5):
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << 7 * group
            if byte < 0x80:
                return value
        raise ValueError("the answer of the broker has a number that is too long")

    def _take(self, length: int) -> bytes:
        part = self._data[self._at : self._at + length]
        if len(part) < length:
            raise ValueError("the answer of the broker ends too soon")
        self._at += length
        return part
