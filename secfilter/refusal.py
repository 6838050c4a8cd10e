"""Decides whether ingest refuses a record, and says why, without the record's values.

All records go through `is_refused`, which is part of ingest's generated code. `words` is not part
of it. It reads a refused record again, so that it costs nothing for other records.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.functions import MAX_TEXT_BYTES
from catalog.schema import Type
from secfilter import broken_json, companies, misfits, role_text, texts, times, undecoded
from secfilter.nested_records import is_nested
from secfilter.shapes import in_words
from secfilter.stream_group import Kind, StreamGroup
from secfilter.strict_json import Envelope

# Columns that ingest has read: the record as text (NULL if it is too large), the texts of its
# values, the shape of its JSON, and whether the quick reading could read it.
TEXT, TEXTS, SHAPE, QUICK = "__text", "__texts", "__shape", "__quick"
# The place of the first invalid time, or NULL if all times are valid.
FAULTY = "__faulty"
# A time as a number is up to fifteen times as long in the held form. The rest of a record of a
# lab topic is for the other attributes, which are at most as long as the sender's record.
_MAX_NESTED_BYTES = MAX_TEXT_BYTES - 1024 * 1024
_LONG = f"its nested values have more than {_MAX_NESTED_BYTES} bytes when times are written in full"
_IN_WORDS = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


def times_of(kind: Kind) -> dict[int, str]:
    """The columns with the times of a tuple of that kind, by their places."""
    places = texts.places_of(kind.schema, Type.TIMESTAMP)
    return {place: f"__time_{kind.number}_{place}" for place in places}


def text_at(place: int | Column) -> Column:
    """The text of the value at that place."""
    return texts.text_at(fn.col(TEXTS), place)


def is_refused(group: StreamGroup, envelope: Envelope) -> Column:
    """Whether the record is no tuple of its stream. Never NULL: an undecided record is refused."""
    strict = ~fn.col(QUICK)
    refused = (
        fn.col("value").isNull()
        | (fn.octet_length("value") > group.each(lambda s: s.max_bytes))
        | (strict & ~_fits(fn.col(SHAPE), group, envelope))
        | fn.col(FAULTY).isNotNull()
        | (strict & _infinite(group).isNotNull())
        | (strict & _separated(group, fn.col(TEXT)).isNotNull())
        | group.by_kind(_no_event_time)
        | group.by_kind(lambda kind: _later_than(kind, _latest(group)))
        | group.by_kind(lambda kind: _earlier_than(kind, _earliest(group)))
    )
    if _has_nested(group):
        refused = refused | _too_long(group)
    if group.ruled:
        refused = refused | role_text.wrong(group).isNotNull()
    if group.levelled:
        refused = refused | companies.wrong(group).isNotNull()
    return fn.coalesce(refused, fn.lit(True))


def words(refused: Column, group: StreamGroup, envelope: Envelope) -> Column:
    """Why the record is refused, or NULL if it is not refused."""
    # Spark generates no code for a function on an array, but evaluates it for each row.
    once = fn.when(refused, fn.array(fn.col("value").cast("string")))
    unknown = fn.lit("no tuple of the stream")
    return fn.get(
        fn.transform(once, lambda text: fn.coalesce(_words(text, group, envelope), unknown)), 0
    )


def _words(text: Column, group: StreamGroup, envelope: Envelope) -> Column:
    strict, faulty = ~fn.col(QUICK), fn.col(FAULTY)
    event_time = group.of_kind(lambda kind: kind.event_time or "")

    def at(place: Column, wrong: Column | str) -> Column:
        return fn.concat(_name_at(group, place), fn.lit(": "), fn.lit(wrong))

    return fn.coalesce(
        undecoded.reason(fn.col("value"), text, group.each(lambda s: s.max_bytes), strict),
        fn.when(strict, _not_fitting(text, group, envelope)),
        fn.when(faulty.isNotNull(), at(faulty, times.fault(text_at(faulty)))),
        fn.when(strict, at(_infinite(group), "out of range of a double")),
        fn.when(strict, at(_separated(group, text), "holds the character U+001E or U+001F")),
        *([fn.when(_too_long(group), _LONG)] if _has_nested(group) else []),
        fn.when(
            group.by_kind(_no_event_time),
            fn.concat(event_time, fn.lit(": null, but it is the event time")),
        ),
        fn.when(
            group.by_kind(lambda kind: _later_than(kind, _latest(group))),
            fn.concat(event_time, fn.lit(": too far ahead of when the broker took it")),
        ),
        fn.when(
            group.by_kind(lambda kind: _earlier_than(kind, _earliest(group))),
            fn.concat(event_time, _lateness(group)),
        ),
        *([role_text.wrong(group)] if group.ruled else []),
        *([companies.wrong(group)] if group.levelled else []),
    )


def _not_fitting(text: Column, group: StreamGroup, envelope: Envelope) -> Column:
    """Why a record is no JSON object with the schema's fields, or NULL if it is one."""
    return _let(envelope.parse(text), lambda json: _misfit(text, json, group, envelope))


def _misfit(text: Column, json: Column, group: StreamGroup, envelope: Envelope) -> Column:
    def of_plain(shape: Column) -> Column:
        misfit = _let(
            misfits.taken_apart(shape, envelope, group),
            lambda apart: misfits.reason(text, apart, envelope, group),
        )
        return fn.when(~_fits(shape, group, envelope), misfit)

    def of_shape(shape: Column) -> Column:
        found = envelope.found(shape)
        other = fn.when(found.isNotNull(), in_words(found))
        broken = _let(broken_json.taken_apart(text), lambda a: broken_json.reason(text, a, other))
        misfit = of_plain(shape)
        if _has_nested(group):
            nested = group.by_kind(lambda k: _nested_misfit(json, k, envelope))
            misfit = fn.when(_is_nested(group), nested).otherwise(misfit)
        return fn.when(_is_object(shape, envelope), misfit).otherwise(broken)

    return _let(group.by_kind(lambda kind: _shape(json, kind, envelope)), of_shape)


def _shape(json: Column, kind: Kind, envelope: Envelope) -> Column:
    if is_nested(kind.schema):
        return envelope.whole(json)
    return envelope.shape(json, kind.schema, kind.written)


def _nested_misfit(json: Column, kind: Kind, envelope: Envelope) -> Column:
    if not is_nested(kind.schema):
        return fn.lit(None).cast("string")
    mistake = envelope.mistake(json, kind.schema, kind.written)
    return fn.coalesce(mistake, fn.when(~envelope.is_alone(json), misfits.NOT_ONE_OBJECT))


def _is_nested(group: StreamGroup) -> Column:
    """Whether the record's stream has nested attributes."""
    return group.by_kind(lambda kind: fn.lit(is_nested(kind.schema)))


def _is_object(shape: Column, envelope: Envelope) -> Column:
    return fn.coalesce(envelope.is_object(shape), fn.lit(False))


def _fits(shape: Column, group: StreamGroup, envelope: Envelope) -> Column:
    """Whether the record is a JSON object with the schema's fields. Never NULL."""
    fields = group.by_kind(lambda kind: envelope.fits(shape, kind.schema, kind.written))
    return _is_object(shape, envelope) & fn.coalesce(fields, fn.lit(False))


def _let(value: Column, result: Callable[[Column], Column]) -> Column:
    """Apply `result` to a value that is computed only once."""
    return fn.get(fn.transform(fn.array(value), result), 0)


def _infinite(group: StreamGroup) -> Column:
    """The place of the first number that is too large for a double, or NULL if there is none."""
    return group.by_kind(lambda kind: texts.out_of_range(fn.col(TEXTS), kind.schema))


def _separated(group: StreamGroup, text: Column) -> Column:
    """The place of the first string with a separator of lab topics, or NULL if there is none."""
    # In JSON those characters must be escaped.
    escaped = fn.contains(text, fn.lit("\\u001"))
    return fn.when(
        escaped, group.by_kind(lambda kind: texts.holds_separator(fn.col(TEXTS), kind.schema))
    )


def _has_nested(group: StreamGroup) -> bool:
    return any(is_nested(kind.schema) for kind in group.kinds)


def _too_long(group: StreamGroup) -> Column:
    """Whether the nested values are too long in the form that lab topics get."""
    length = group.by_kind(lambda kind: texts.nested_bytes(fn.col(TEXTS), kind.schema))
    return length > fn.lit(_MAX_NESTED_BYTES)


def _name_at(group: StreamGroup, place: Column) -> Column:
    names = group.of_kind(lambda kind: fn.array(*map(fn.lit, kind.schema.names)))
    return fn.get(names, place - fn.lit(1))


def _no_event_time(kind: Kind) -> Column:
    if kind.event_time is None:
        return fn.lit(False)
    return _event_time(kind, kind.event_time).isNull()


def _latest(group: StreamGroup) -> Column:
    """The newest event time that the record may have, in ms since 1970.

    It depends on the broker's time for the record, so it is the same each time that it is read.
    """
    return fn.unix_millis("timestamp") + group.each(lambda s: s.max_ahead_ms)


def _later_than(kind: Kind, latest: Column) -> Column:
    """Whether the event time is too far in the future. Such a tuple would close all windows."""
    if kind.event_time is None:
        return fn.lit(False)
    return fn.unix_millis(_event_time(kind, kind.event_time)) > latest


def _earliest(group: StreamGroup) -> Column:
    """The oldest event time that the record may have, in ms since 1970. As `_latest`."""
    return fn.unix_millis("timestamp") - group.each(lambda s: s.late_ms)


def _earlier_than(kind: Kind, earliest: Column) -> Column:
    """Whether the record is late. The tuples of other records do not decide this."""
    if kind.event_time is None:
        return fn.lit(False)
    return fn.unix_millis(_event_time(kind, kind.event_time)) < earliest


def _lateness(group: StreamGroup) -> Column:
    """Why a record is late, in words behind the name of its event time."""
    none = fn.lit(None).cast("timestamp")
    time = group.by_kind(lambda k: _event_time(k, k.event_time) if k.event_time else none)
    return fn.concat(
        fn.lit(": late. It is "),
        fn.date_format(time, _IN_WORDS),
        fn.lit(", the broker took the record at "),
        fn.date_format("timestamp", _IN_WORDS),
        fn.lit(", and the stream's lateness is "),
        group.each(lambda s: str(s.late_ms)),
        fn.lit(" ms"),
    )


def _event_time(kind: Kind, name: str) -> Column:
    place = kind.schema.names.index(name) + 1
    return fn.col(times_of(kind)[place])
