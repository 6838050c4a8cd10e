"""The clock column: a tuple's event time, shifted so that it is always after 1970.

Spark's first watermark is 1970, and a tuple that is older than the watermark is late. So each tuple
with a time before 1970 would be late. Windows, joins and the removal of repeated tuples use this
column instead. The attributes keep their own times.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.plan import Window

CLOCK = "__clock"
# The shift moves year 1, and windows that begin before it, to after 1970. It keeps year 9999 far
# before the end of Spark's times (294247).
_SHIFT_MS = 732_000 * 24 * 3_600_000
_SHIFT_US = _SHIFT_MS * 1_000


def to_clock(time: Column) -> Column:
    """The place of an event time on the clock. It is NULL for NULL."""
    return fn.timestamp_micros(fn.try_add(fn.unix_micros(time), fn.lit(_SHIFT_US)))


def from_clock(place: Column) -> Column:
    """The event time at this place of the clock."""
    return fn.timestamp_micros(fn.unix_micros(place) - fn.lit(_SHIFT_US))


def no_clock() -> Column:
    """The place of a tuple without event time."""
    return fn.lit(None).cast("timestamp")


def window_on(clock: Column, window: Window) -> Column:
    """The windows that contain a place of the clock. Their edges are places of the clock too.

    Their event times are counted from 1970 (`catalog.plan.Window`), which has another place on the
    clock.
    """
    size, slide = window.size_ms, window.slide_ms
    start = f"{(_SHIFT_MS + window.offset_ms) % slide} milliseconds"
    return fn.window(clock, f"{size} milliseconds", f"{slide} milliseconds", start)
