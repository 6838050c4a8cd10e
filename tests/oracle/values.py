"""What the oracle computes with: plain values, rows of a schema, tuples with their label."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from catalog.label import Label
from catalog.schema import Schema


@dataclass(frozen=True, slots=True)
class Items:
    """The elements of an array."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """The values of a map by their keys, which are sorted, or those of a structure by its fields.

    A field that is NULL is left out.
    """

    pairs: tuple[tuple[str, Value], ...]


# A TIMESTAMP is a naive datetime in UTC; None is NULL.
Value = bool | int | float | str | datetime | Items | Named | None

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_MICROSECOND = timedelta(microseconds=1)


def timestamp(microseconds: int) -> datetime:
    """The time that many microseconds after 1970 UTC."""
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds(time: datetime) -> int:
    """Microseconds since 1970 UTC."""
    return (time - EPOCH) // _MICROSECOND


@dataclass(frozen=True, slots=True)
class Row:
    """Values under the names and types of a schema: what an expression is evaluated over."""

    schema: Schema
    values: tuple[Value, ...]

    def __getitem__(self, name: str) -> Value:
        return self.values[self.schema.names.index(name)]


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple's values, in schema order, and its label; None: there was none that can be read.

    `sender` is the independent user that sent it. None: nobody who counts did. `closes` says that
    it is the result of a window, whose end is its time. `hidden` says that the reader may not see
    it. Only a window with one size for all tuples counts it.
    """

    values: tuple[Value, ...]
    label: Label | None
    sender: int | None = field(default=None, compare=False)
    closes: bool = field(default=False, compare=False)
    hidden: bool = field(default=False, compare=False)
