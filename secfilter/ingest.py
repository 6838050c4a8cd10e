"""Ingest: records of in.<stream> are checked, labelled and written to lab.<stream> (004 §3.2).

What does not fit the stream's schema goes to quarantine.<stream> as it came, with the reason. One
Spark query serves a group of streams: each rule is a CASE on the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.runs import IngestRun, IngestStream
from catalog.schema import Schema
from catalog.topics import (
    LABEL_HEADER,
    ORIGIN_HEADER,
    REASON_HEADER,
    in_topic,
    lab_topic,
    quarantine_topic,
)
from secfilter import quick_json, strict_json
from secfilter.lab import headers
from secfilter.strict_json import Envelope, with_times

# stream -> partition -> the newest offset of in.<stream> that lab.<stream> holds.
Newest = Mapping[str, Mapping[int, int]]
_STREAM, _TEXT, _JSON, _SHAPE, _REASON = "__stream", "__text", "__json", "__shape", "__reason"
# What the quick reading makes of the text, and whether it could.
_APART, _PARTS, _QUICK = "__apart", "__parts", "__quick"
_RAW = ("key", "value", "partition", "offset", "timestamp")


def in_topics(run: IngestRun) -> list[str]:
    """The topics that the run reads."""
    return [in_topic(stream.relation.name) for stream in run.streams]


def ingest(records: DataFrame, run: IngestRun, newest: Newest) -> DataFrame:
    """Records for Kafka's sink from those of its source.

    The result has `topic`, `key`, `value`, `headers` and `partition`.

    `newest` is what lab topics hold already: it is left out, so that a crash puts no tuple into lab
    twice (quarantine may hold a record again).
    """
    envelope = Envelope()
    read = _parsed(records, run.streams, envelope).select(
        *_RAW,
        _STREAM,
        _TEXT,
        _QUICK,
        _SHAPE,
        *(
            fn.when(_is(i), _read(envelope, s.relation.schema)).alias(_tuple(i))
            for i, s in enumerate(run.streams)
        ),
    )
    timed = read.select(
        *_RAW,
        _STREAM,
        _TEXT,
        _QUICK,
        _SHAPE,
        *(
            fn.when(_is(i), with_times(fn.col(_tuple(i)), s.relation.schema, fn.col(_QUICK))).alias(
                _tuple(i)
            )
            for i, s in enumerate(run.streams)
        ),
    )
    checked = timed.select(
        *_RAW,
        _STREAM,
        _reason(run.streams, envelope).alias(_REASON),
        *(_tuple(index) for index in range(len(run.streams))),
    )
    return _addressed(checked.where(~_repeated(run.streams, newest)), run.streams)


def _parsed(records: DataFrame, streams: Sequence[IngestStream], envelope: Envelope) -> DataFrame:
    number = _by_topic({in_topic(s.relation.name): fn.lit(i) for i, s in enumerate(streams)})
    known = records.select(*_RAW, number.alias(_STREAM))
    # What is too large or not UTF-8 is not even looked at.
    text = fn.when(
        (fn.octet_length("value") <= _each(streams, lambda s: fn.lit(s.max_bytes)))
        & fn.is_valid_utf8(fn.col("value").cast("string")),
        fn.col("value").cast("string"),
    )
    texts = known.select(*_RAW, _STREAM, text.alias(_TEXT))
    apart = _each(streams, lambda s: quick_json.taken_apart(fn.col(_TEXT), s.relation.schema))
    tried = texts.select("*", apart.alias(_APART))
    usual = quick_json.is_usual(fn.col(_TEXT), fn.col(_APART))
    sorted_out = tried.select("*", usual.alias(_QUICK))
    # Most records need no more than that; the others are parsed.
    parts = fn.when(fn.col(_QUICK), quick_json.parts_of(fn.col(_APART)))
    json = fn.when(~fn.col(_QUICK), envelope.parse(fn.col(_TEXT)))
    parsed = sorted_out.select("*", parts.alias(_PARTS), json.alias(_JSON))
    return parsed.select("*", fn.schema_of_variant(fn.col(_JSON)).alias(_SHAPE))


def _read(envelope: Envelope, schema: Schema) -> Column:
    """The record as a tuple of the schema; timestamps are still text."""
    quick = quick_json.tuple_of(fn.col(_PARTS), schema)
    return fn.when(fn.col(_QUICK), quick).otherwise(envelope.tuple_of(fn.col(_JSON), schema))


def _reason(streams: Sequence[IngestStream], envelope: Envelope) -> Column:
    """Why a record is refused, in words without data; NULL for a tuple of its stream."""
    shape, value, strict = fn.col(_SHAPE), fn.col("value"), ~fn.col(_QUICK)
    too_large = fn.octet_length(value) > _each(streams, lambda s: fn.lit(s.max_bytes))
    fits = _each(streams, lambda s: envelope.fits(shape, s.relation.schema))
    # In JSON those characters can only stand escaped.
    escaped = fn.contains(fn.col(_TEXT), fn.lit("\\u001"))
    return (
        fn.when(value.isNull(), "there is no value")
        .when(too_large, "larger than the stream allows")
        .when(fn.col(_TEXT).isNull(), "not UTF-8")
        .when(strict & (shape.isNull() | ~envelope.is_object(shape)), "not exactly one JSON object")
        .when(strict & ~fits, "fields or their types are not the schema's")
        .when(_each_tuple(streams, _unreadable_time), "a timestamp is not ISO 8601 with a zone")
        .when(_each_tuple(streams, _out_of_range), "a number is out of range")
        .when(
            escaped & _each_tuple(streams, _holds_separator),
            "a string holds the character U+001E or U+001F",
        )
        .when(_each_tuple(streams, _no_event_time), "the event time is null")
        .when(_each_tuple(streams, _too_early), "the event time is too far ahead of the clock")
    )


def _unreadable_time(read: Column, stream: IngestStream) -> Column:
    return strict_json.unreadable_timestamp(read, stream.relation.schema)


def _out_of_range(read: Column, stream: IngestStream) -> Column:
    return strict_json.out_of_range(read, stream.relation.schema)


def _holds_separator(read: Column, stream: IngestStream) -> Column:
    return strict_json.holds_separator(read, stream.relation.schema)


def _no_event_time(read: Column, stream: IngestStream) -> Column:
    name = stream.relation.event_time
    return read[name].isNull() if name is not None else fn.lit(False)


def _too_early(read: Column, stream: IngestStream) -> Column:
    """Whether the tuple is from the future: it would close every window."""
    name = stream.relation.event_time
    if name is None:
        return fn.lit(False)
    # When the broker took it, by its clock: the same however often the record is read.
    return fn.unix_millis(read[name]) > fn.unix_millis("timestamp") + fn.lit(stream.max_ahead_ms)


def _repeated(streams: Sequence[IngestStream], newest: Newest) -> Column:
    """Whether a valid record is in its lab topic already."""
    skipped = fn.lit(False)
    for index, stream in enumerate(streams):
        for partition, offset in sorted(newest.get(stream.relation.name, {}).items()):
            here = _is(index) & (fn.col("partition") == fn.lit(partition))
            skipped = fn.when(here, fn.col("offset") <= fn.lit(offset)).otherwise(skipped)
    return fn.col(_REASON).isNull() & skipped


def _addressed(checked: DataFrame, streams: Sequence[IngestStream]) -> DataFrame:
    valid = fn.col(_REASON).isNull()
    place = {name: fn.col(name).cast("string") for name in ("partition", "offset")}
    origin = fn.concat_ws(":", place["partition"], place["offset"])
    label = _each(streams, lambda s: fn.lit(s.label.to_wire()))
    refused = headers(
        (REASON_HEADER, fn.col(_REASON)),
        *place.items(),
        ("timestamp", fn.unix_millis("timestamp").cast("string")),
    )
    value = _each_tuple(streams, lambda read, s: strict_json.lab_value(read, s.relation.schema))
    return checked.select(
        fn.when(valid, _each(streams, lambda s: fn.lit(lab_topic(s.relation.name))))
        .otherwise(_each(streams, lambda s: fn.lit(quarantine_topic(s.relation.name))))
        .alias("topic"),
        fn.when(~valid, fn.col("key")).alias("key"),
        fn.when(valid, value.cast("binary")).otherwise(fn.col("value")).alias("value"),
        fn.when(valid, headers((LABEL_HEADER, label), (ORIGIN_HEADER, origin)))
        .otherwise(refused)
        .alias("headers"),
        # A lab partition is the in partition, so that its newest origin says what it holds.
        fn.when(valid, fn.col("partition")).alias("partition"),
    )


def _is(index: int) -> Column:
    return fn.col(_STREAM) == fn.lit(index)


def _tuple(index: int) -> str:
    return f"__tuple_{index}"


def _by_topic(values: Mapping[str, Column]) -> Column:
    (first, value), *others = values.items()
    result = fn.when(fn.col("topic") == fn.lit(first), value)
    for topic, other in others:
        result = result.when(fn.col("topic") == fn.lit(topic), other)
    return result


def _each(streams: Sequence[IngestStream], rule: Callable[[IngestStream], Column]) -> Column:
    """The rule of the record's stream."""
    result = fn.when(_is(0), rule(streams[0]))
    for index, stream in enumerate(streams[1:], start=1):
        result = result.when(_is(index), rule(stream))
    return result


def _each_tuple(
    streams: Sequence[IngestStream], rule: Callable[[Column, IngestStream], Column]
) -> Column:
    """The rule of the record's stream, over its tuple."""
    result = fn.when(_is(0), rule(fn.col(_tuple(0)), streams[0]))
    for index, stream in enumerate(streams[1:], start=1):
        result = result.when(_is(index), rule(fn.col(_tuple(index)), stream))
    return result
