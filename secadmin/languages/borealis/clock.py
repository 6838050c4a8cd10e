"""How a diagram counts event time: as a timestamp, or as a number of seconds or the like.

Borealis counts time in a numeric field, and the size of a window in the unit of that field. The
platform keeps event time as a timestamp. The records of a stream may still have numbers
(`catalog.record_format`), and their unit is the unit of the diagram.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from catalog.errors import InvalidInput
from catalog.record_format import TimeFormat
from catalog.schema import Type
from secadmin.languages.borealis.parameters import Parameter
from secadmin.languages.duration import limited_ms, short_ms
from secadmin.languages.resolver import Resolver

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
NUMBERS = frozenset({Type.BIGINT, Type.DOUBLE})


class DiagramResolver(Resolver, Protocol):
    """Looks up relations for a diagram, and how their records write times."""

    def time_format(self, name: str) -> TimeFormat:
        """How the records of a relation write times. The relation was looked up before."""
        ...


@dataclass(frozen=True, slots=True)
class Clock:
    """The event time of a stream as the diagram declares it.

    `unit_us` is one unit of a size that names no unit, in microseconds. `number` says that the
    diagram declares the event time as a number, and `whole` that it is a whole number.
    """

    unit_us: int = 1_000
    number: bool = False
    whole: bool = False


def number_clock(kind: Type, times: TimeFormat) -> Clock | None:
    """The clock of an event time that a schema declares as a number of this type.

    It is None if the records of the stream do not write times as numbers.
    """
    if times is TimeFormat.ISO:
        return None
    return Clock(times.micros, number=True, whole=kind is Type.BIGINT)


def common_clock(clocks: Iterable[Clock | None]) -> Clock | None:
    """The clock of all of them, or None if they differ."""
    found = set(clocks)
    return found.pop() if len(found) == 1 else None


def size_ms(parameter: Parameter, clock: Clock | None) -> int:
    """The length in milliseconds of a size in a parameter. Raises InvalidInput.

    A size without a unit counts in the unit of the clock.
    """
    text, place = parameter.text.strip(), parameter.place()
    if not _NUMBER.fullmatch(text) or (clock == Clock() and text.isdigit()):
        return short_ms(text, place)
    if clock is None:
        raise InvalidInput(
            f"the inputs count time in different units; write {parameter.name} with a unit, such "
            f"as {text}s",
            place,
        )
    length = Decimal(text) * clock.unit_us / 1_000
    if length != int(length):
        raise InvalidInput(
            f"{parameter.name} is a whole number of milliseconds; write it with a unit, such as "
            "500ms",
            place,
        )
    return limited_ms(int(length), place)
