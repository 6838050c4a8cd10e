"""The clock column: a tuple's event time, moved to where Spark's watermark can see it.

Spark's first watermark is 1970, and what is older than the watermark is late: so nothing before
1970 would ever be in time. Windows, joins and what is left out as repeated go by this column, in
which every time that a tuple can have lies after 1970; attributes keep their own times.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.plan import Window

CLOCK = "__clock"
# Year 1 and the windows that reach back from it come to lie after 1970, year 9999 far before the
# end of Spark's times (294247).
_SHIFT_MS = 732_000 * 24 * 3_600_000
_SHIFT_US = _SHIFT_MS * 1_000


def to_clock(time: Column) -> Column:
    """The place of an event time on the clock, NULL where it has none."""
    return fn.timestamp_micros(fn.try_add(fn.unix_micros(time), fn.lit(_SHIFT_US)))


def from_clock(place: Column) -> Column:
    """The time that stands at this place of the clock."""
    return fn.timestamp_micros(fn.unix_micros(place) - fn.lit(_SHIFT_US))


def no_clock() -> Column:
    """The place of a tuple without event time."""
    return fn.lit(None).cast("timestamp")


def window_on(clock: Column, window: Window) -> Column:
    """The windows that a place of the clock lies in; their edges are places of the clock.

    Their times are aligned to 1970 (`catalog.plan.Window`), wherever that is on the clock.
    """
    size, slide = window.size_ms, window.slide_ms
    start = f"{_SHIFT_MS % slide} milliseconds"
    return fn.window(clock, f"{size} milliseconds", f"{slide} milliseconds", start)
