"""The primitive types of the Kafka protocol, in the encoding of its non-flexible versions."""

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

    def _take(self, length: int) -> bytes:
        part = self._data[self._at : self._at + length]
        if len(part) < length:
            raise ValueError("the answer of the broker ends too soon")
        self._at += length
        return part
