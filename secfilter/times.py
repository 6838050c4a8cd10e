"""Reads the times of records: ISO 8601 with a zone, or a number since 1970 UTC.

Both readings of a record's JSON give a time as a text (`secfilter.texts`): ISO 8601 (UTC if there
is no zone) or a decimal number. If it is not a time, the text begins with "?" and says why.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import TimeFormat

_FORM = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_ISO_8601 = rf"\A{_FORM}(?:[Zz]|[+-]\d\d:?\d\d)\z"
_NO_ZONE = rf"\A{_FORM}\z"
_NUMBER = r"\A-?\d{1,38}(?:\.\d{1,9})?\z"
_NONE = "?"
_LIKE = "write it as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00"
_OUTSIDE = "outside the years 0001 to 9999 (UTC)"
_SECONDS_AT = 18
# Only these years can be delivered, because the year is written with four digits.
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
_WHOLE = 2**31 - 1


def checked_text(value: Column, written: TimeFormat) -> Column:
    """The text of a time from a value that the strict reading found."""
    if written is TimeFormat.ISO:
        return (
            # Spark does not read lower-case letters in a time.
            fn.when(value.rlike(_ISO_8601), fn.upper(value))
            .when(value.rlike(_NO_ZONE), f"{_NONE}no zone; {_LIKE}")
            .otherwise(f"{_NONE}not a time in ISO 8601; {_LIKE}")
        )
    return fn.when(value.rlike(_NUMBER), value).otherwise(
        f"{_NONE}more than nine digits behind the point"
    )


def read(text: Column, written: TimeFormat) -> Column:
    """The time, cut to the microsecond, or NULL if there is none or it cannot be read."""
    if written is TimeFormat.ISO:
        return text.try_cast("timestamp")
    unit = fn.lit(written.micros)
    # 18 digits before the point are more than any time has.
    fraction = fn.floor(text.try_cast("decimal(27,9)") * unit).try_cast("bigint")
    whole = fn.try_multiply(text.try_cast("bigint"), unit.cast("bigint"))
    return fn.timestamp_micros(fn.when(fn.contains(text, fn.lit(".")), fraction).otherwise(whole))


def is_faulty(text: Column, time: Column) -> Column:
    """Whether the text is not empty, but `time` (its `read`) is not an accepted time."""
    first, last = (fn.timestamp_micros(fn.lit(us)) for us in (_FIRST_US, _LAST_US))
    outside = (time < first) | (time > last)
    return fn.when(time.isNull(), text != fn.lit("")).otherwise(outside)


def fault(text: Column) -> Column:
    """Why a text is faulty, in words."""
    like_iso = fn.contains(text, fn.lit(":"))
    return (
        fn.when(fn.startswith(text, fn.lit(_NONE)), fn.substring(text, len(_NONE) + 1, _WHOLE))
        .when(~like_iso | text.try_cast("timestamp").isNotNull(), _OUTSIDE)
        .when(fn.substring(text, _SECONDS_AT, 2) == fn.lit("60"), "a leap second, which is no time")
        .otherwise("no such time: the day, the hour or the zone does not exist")
    )
