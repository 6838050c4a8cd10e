"""Single values of moving windows as texts, as `secfilter.lab.encode_attribute` writes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from catalog.schema import AttributeType, Type, held_as
from secfilter.lab import NULL_MARK

Value = bool | int | float | str


READERS: Mapping[Type, Callable[[str], Value]] = {
    Type.BIGINT: int,
    Type.TIMESTAMP: int,
    Type.DOUBLE: float,
    Type.BOOLEAN: "true".__eq__,
    Type.STRING: str,
}
"""What reads a text of each type that is not NULL."""


def value_of(text: str, kind: AttributeType) -> Value | None:
    """The value that a text stands for."""
    return None if text == NULL_MARK else READERS[held_as(kind)](text)


def text_of(value: Value | None) -> str:
    """The text of a value. A double that is not finite is NULL, and zero has no sign."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return NULL_MARK
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value + 0.0)
    return value if isinstance(value, str) else repr(value)
