"""The columns of time in a plan that keeps state: the clock, and ticks.

The clock column is a tuple's event time, shifted so that it is always after 1970. Spark's first
watermark is 1970, and a tuple that is older than the watermark is late. So each tuple with a time
before 1970 would be late. Windows, joins and the removal of repeated tuples use this column
instead. The attributes keep their own times.

The tick column has the watermark of a stream whose time is moved by ticks. Only ticks have a time
there. So no tuple moves time, whatever its event time is, and also if nobody may see it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.plan import SessionWindow, Window
from secfilter.columns import TICK_COLUMN, quoted

CLOCK = "__clock"
# The clock of a tuple in a join, as a number: what a window over the pairs goes by.
MOMENT = "__moment"
# The shift moves year 1, and windows that begin before it, to after 1970. It keeps year 9999 far
# before the end of Spark's times (294247).
SHIFT_MS = 732_000 * 24 * 3_600_000
_SHIFT_US = SHIFT_MS * 1_000
# Spark's operators take the column with this metadata for the event time.
IS_EVENT_TIME = {"spark.watermarkDelayMs": 0}


def to_clock(time: Column) -> Column:
    """The place of an event time on the clock. It is NULL for NULL."""
    return fn.timestamp_micros(fn.try_add(fn.unix_micros(time), fn.lit(_SHIFT_US)))


def from_clock(place: Column) -> Column:
    """The event time at this place of the clock."""
    return fn.timestamp_micros(fn.unix_micros(place) - fn.lit(_SHIFT_US))


def no_clock() -> Column:
    """The place of a tuple without event time."""
    return fn.lit(None).cast("timestamp")


def tick_at(time_ms: Column) -> Column:
    """The tick column of a tick: the watermark that it makes, as a place of the clock.

    A tuple of exactly the tick's time is in time. Some operators drop what is exactly as old as the
    watermark, so the watermark is a millisecond earlier.
    """
    place = fn.try_add(time_ms, fn.lit(SHIFT_MS - 1))
    return fn.timestamp_micros(fn.try_multiply(place, fn.lit(1_000)))


def no_tick() -> Column:
    """The tick column of a tuple. It does not move time."""
    return fn.timestamp_micros(fn.lit(0))


def moved_by_ticks(frame: DataFrame) -> DataFrame:
    """The tuples of a frame with both columns. Its ticks move the watermark, and end here."""
    timed = frame.withWatermark(TICK_COLUMN, "0 milliseconds")
    # Spark does not move a condition on this column below the watermark.
    tuples = timed.where(fn.col(TICK_COLUMN) == no_tick())
    others = (fn.col(quoted(n)) for n in frame.columns if n not in {TICK_COLUMN, CLOCK})
    # It would move all other conditions there, such as those of the query. A tick fulfils none of
    # them, so time would not move. But Spark moves nothing past a column that is not deterministic.
    # This condition is always true, and Spark does not simplify it.
    barrier = fn.spark_partition_id() >= fn.lit(0)
    clock = as_clock(fn.when(barrier, fn.col(CLOCK)))
    return tuples.select(*others, clock)


def last_moment(end: Column) -> Column:
    """The clock of the result of a window with this end: the last microsecond in the window."""
    return as_clock(fn.timestamp_micros(fn.unix_micros(end) - fn.lit(1)))


def as_clock(place: Column) -> Column:
    """The clock of tuples that are at this place of it."""
    return place.alias(CLOCK, metadata=IS_EVENT_TIME)


def window_on(clock: Column, window: Window | SessionWindow) -> Column:
    """The windows that contain a place of the clock. Their edges are places of the clock too.

    Their event times are counted from 1970 (`catalog.plan.Window`), which has another place on the
    clock.
    """
    if isinstance(window, SessionWindow):
        return fn.session_window(clock, f"{window.gap_ms} milliseconds")
    size, slide = window.size_ms, window.slide_ms
    start = f"{(SHIFT_MS + window.offset_ms) % slide} milliseconds"
    return fn.window(clock, f"{size} milliseconds", f"{slide} milliseconds", start)
