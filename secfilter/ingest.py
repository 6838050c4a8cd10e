"""Ingest: records of in.<stream> are checked, labelled and written to lab.<stream> (004 §3.2).

What does not fit the stream's schema goes to quarantine.<stream> as it came, with the reason; what
is larger than that topic takes leaves its key and value behind, and says how large they were. One
Spark query serves a group of streams: what differs from stream to stream is looked up by the topic,
what differs from schema to schema is a CASE (`secfilter.stream_group`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.runs import IngestRun
from catalog.schema import Type
from catalog.topics import (
    LABEL_HEADER,
    REASON_HEADER,
    in_topic,
    lab_topic,
    quarantine_topic,
)
from secfilter import broken_json, misfits, quick_json, strict_json, texts, times, undecoded
from secfilter.fanout import DEFAULT_MAX_BYTES
from secfilter.lab import headers
from secfilter.stream_group import KIND, STREAM, Kind, StreamGroup, is_kind
from secfilter.strict_json import Envelope

# stream -> partition -> the newest offset of in.<stream> that lab.<stream> holds.
Newest = Mapping[str, Mapping[int, int]]
_TEXT, _TEXTS, _SHAPE, _REASON = "__text", "__texts", "__shape", "__reason"
# What is wrong with a record that is no JSON object, or none of the schema's; NULL for all others.
_BROKEN, _MISFIT = "__broken", "__misfit"
# The place of the first time that is none.
_FAULTY = "__faulty"
# What the quick reading makes of the text, and whether it could; what the strict one makes of it.
_DENSE, _APART, _QUICK, _JSON = "__dense", "__apart", "__quick", "__json"
_RAW = ("key", "value", "partition", "offset", "timestamp")
_READ = (*_RAW, STREAM, KIND)


def in_topics(run: IngestRun) -> list[str]:
    """The topics that the run reads."""
    return [in_topic(stream.relation.name) for stream in run.streams]


def ingest(records: DataFrame, run: IngestRun, newest: Newest) -> DataFrame:
    """Records for Kafka's sink from those of its source.

    The result has `topic`, `key`, `value`, `headers` and `partition`.

    `newest` is what lab topics hold already: it is left out, so that a crash puts no tuple into lab
    twice (quarantine may hold a record again).
    """
    envelope, group = Envelope(), StreamGroup.of(run.streams)
    parsed = _parsed(records, group, envelope)
    timed = parsed.select("*", *(column for kind in group.kinds for column in _timed(kind)))
    dated = timed.select("*", group.by_kind(_faulty_time).alias(_FAULTY))
    checked = dated.select(
        *_READ,
        _TEXTS,
        _reason(group, envelope).alias(_REASON),
        *(name for kind in group.kinds for name in _times(kind).values()),
    )
    return _addressed(checked.where(~_repeated(group, newest)), group)


def _parsed(records: DataFrame, group: StreamGroup, envelope: Envelope) -> DataFrame:
    numbered = records.select(*_RAW, group.number(fn.col("topic")).alias(STREAM))
    known = numbered.select("*", group.kind().alias(KIND))
    # What is too large is not even looked at.
    text = fn.when(
        fn.octet_length("value") <= group.each(lambda s: s.max_bytes),
        fn.col("value").cast("string"),
    )
    decoded = known.select("*", text.alias(_TEXT))
    dense = decoded.select("*", _apart(group, blanks=False).alias(_DENSE))
    apart = fn.when(quick_json.is_apart(fn.col(_DENSE)), fn.col(_DENSE))
    tried = dense.select("*", apart.otherwise(_apart(group, blanks=True)).alias(_APART))
    usual = quick_json.is_usual(fn.col(_TEXT), fn.col(_APART))
    sorted_out = tried.select("*", usual.alias(_QUICK))
    # Most records need no more than that; the others are parsed, where they are UTF-8.
    parsable = ~fn.col(_QUICK) & fn.is_valid_utf8(fn.col(_TEXT))
    json = fn.when(parsable, envelope.parse(fn.col(_TEXT)))
    parsed = sorted_out.select("*", json.alias(_JSON))
    strict = parsed.select(
        "*",
        group.by_kind(lambda k: envelope.shape(fn.col(_JSON), k.schema, k.written)).alias(_SHAPE),
        *(_strict(envelope, kind) for kind in group.kinds),
    )
    texts_of = group.by_kind(
        lambda kind: strict_json.texts_of(fn.col(_tuple(kind)), kind.schema, kind.written)
    )
    both = fn.when(fn.col(_QUICK), quick_json.texts_of(fn.col(_APART))).otherwise(texts_of)
    wrong = _wrong(group, envelope)
    return strict.select(*_READ, _TEXT, _QUICK, _SHAPE, both.alias(_TEXTS), *wrong)


def _wrong(group: StreamGroup, envelope: Envelope) -> tuple[Column, Column]:
    """The columns `_BROKEN` and `_MISFIT`."""
    shape, strict = fn.col(_SHAPE), ~fn.col(_QUICK)
    is_object = fn.coalesce(envelope.is_object(shape), fn.lit(False))
    fits = group.by_kind(lambda kind: envelope.fits(shape, kind.schema, kind.written))
    broken = fn.when(strict & ~is_object, broken_json.taken_apart(fn.col(_TEXT)))
    misfit = fn.when(strict & is_object & ~fits, misfits.taken_apart(shape, envelope, group))
    return broken.alias(_BROKEN), misfit.alias(_MISFIT)


def _apart(group: StreamGroup, *, blanks: bool) -> Column:
    text = fn.col(_TEXT)
    return group.by_kind(
        lambda k: quick_json.taken_apart(text, k.schema, k.written.times, blanks=blanks)
    )


def _tuple(kind: Kind) -> str:
    return f"__tuple_{kind.number}"


def _strict(envelope: Envelope, kind: Kind) -> Column:
    read = envelope.tuple_of(fn.col(_JSON), kind.schema)
    return fn.when(is_kind(kind), read).alias(_tuple(kind))


def _times(kind: Kind) -> dict[int, str]:
    """The columns of the times of a tuple of that kind, by their places."""
    places = texts.places_of(kind.schema, Type.TIMESTAMP)
    return {place: f"__time_{kind.number}_{place}" for place in places}


def _timed(kind: Kind) -> list[Column]:
    written = kind.written.times
    return [
        fn.when(is_kind(kind), times.read(_text_at(place), written)).alias(name)
        for place, name in _times(kind).items()
    ]


def _text_at(place: int | Column) -> Column:
    return texts.text_at(fn.col(_TEXTS), place)


def _reason(group: StreamGroup, envelope: Envelope) -> Column:
    """Why a record is refused, in words without its values; NULL for a tuple of its stream.

    The words are made only for what is refused, by the same code for all kinds.
    """
    text, strict, read = fn.col(_TEXT), ~fn.col(_QUICK), fn.col(_TEXTS)
    broken, misfit, faulty = fn.col(_BROKEN), fn.col(_MISFIT), fn.col(_FAULTY)
    infinite = group.by_kind(lambda kind: texts.out_of_range(read, kind.schema))
    separator = group.by_kind(lambda kind: texts.holds_separator(read, kind.schema))
    # In JSON those characters can only stand escaped.
    escaped = strict & fn.contains(text, fn.lit("\\u001"))
    latest = fn.unix_millis("timestamp") + group.each(lambda s: s.max_ahead_ms)
    event_time = group.of_kind(lambda kind: kind.event_time or "")

    def at(place: Column, wrong: Column | str) -> Column:
        return fn.concat(_name_at(group, place), fn.lit(": "), fn.lit(wrong))

    return fn.coalesce(
        undecoded.reason(fn.col("value"), text, group.each(lambda s: s.max_bytes), strict),
        _refused(broken, broken_json.reason(text, broken, _other_json(envelope))),
        _refused(misfit, misfits.reason(text, misfit, envelope, group)),
        _refused(faulty, at(faulty, times.fault(_text_at(faulty)))),
        fn.when(strict, at(infinite, "out of range of a double")),
        fn.when(escaped, at(separator, "holds the character U+001E or U+001F")),
        fn.when(
            group.by_kind(_no_event_time),
            fn.concat(event_time, fn.lit(": null, but it is the event time")),
        ),
        fn.when(
            group.by_kind(lambda kind: _later_than(kind, latest)),
            fn.concat(event_time, fn.lit(": too far ahead of when the broker took it")),
        ),
    )


def _refused(wrong: Column, words: Column) -> Column:
    """The words where something is wrong: never NULL there, or the record would pass."""
    return fn.when(wrong.isNotNull(), fn.coalesce(words, fn.lit("no tuple of the stream")))


def _name_at(group: StreamGroup, place: Column) -> Column:
    names = group.of_kind(lambda kind: fn.array(*map(fn.lit, kind.schema.names)))
    return fn.get(names, place - fn.lit(1))


def _other_json(envelope: Envelope) -> Column:
    """In words, what a record is that is JSON but no object; NULL where it is not JSON."""
    found = envelope.found(fn.col(_SHAPE))
    return fn.when(found.isNotNull(), misfits.in_words(found))


def _faulty_time(kind: Kind) -> Column:
    """The place of the first time that is none, NULL where there is none."""
    return texts.first_place(
        {
            place: times.is_faulty(_text_at(place), fn.col(name))
            for place, name in _times(kind).items()
        }
    )


def _no_event_time(kind: Kind) -> Column:
    if kind.event_time is None:
        return fn.lit(False)
    return _event_time(kind, kind.event_time).isNull()


def _later_than(kind: Kind, latest: Column) -> Column:
    """Whether the tuple is from the future: it would close every window.

    `latest` goes by when the broker took it, by its clock: the same however often it is read.
    """
    if kind.event_time is None:
        return fn.lit(False)
    return fn.unix_millis(_event_time(kind, kind.event_time)) > latest


def _repeated(group: StreamGroup, newest: Newest) -> Column:
    """Whether a valid record is in its lab topic already."""
    held = group.by_partition(lambda s: newest.get(s.relation.name, {}))
    return fn.col(_REASON).isNull() & fn.coalesce(fn.col("offset") <= held, fn.lit(False))


def _addressed(checked: DataFrame, group: StreamGroup) -> DataFrame:
    valid = fn.col(_REASON).isNull()
    place = {name: fn.col(name).cast("string") for name in ("partition", "offset")}
    origin = fn.concat_ws(":", place["partition"], place["offset"])
    accepted = group.each(lambda s: headers((LABEL_HEADER, fn.lit(s.label.to_wire()))))
    size = fn.coalesce(fn.octet_length("key"), fn.lit(0)) + fn.coalesce(
        fn.octet_length("value"), fn.lit(0)
    )
    # A sender's compressed record may be larger than any topic takes: one would stop the group.
    kept = size <= fn.lit(DEFAULT_MAX_BYTES)
    why = (
        (REASON_HEADER, fn.col(_REASON)),
        *place.items(),
        ("timestamp", fn.unix_millis("timestamp").cast("string")),
    )
    refused = fn.when(kept, headers(*why)).otherwise(headers(*why, ("size", size.cast("string"))))
    value = group.by_kind(_lab_value)
    return checked.select(
        fn.when(valid, group.each(lambda s: lab_topic(s.relation.name)))
        .otherwise(group.each(lambda s: quarantine_topic(s.relation.name)))
        .alias("topic"),
        fn.when(valid, origin.cast("binary")).otherwise(fn.when(kept, fn.col("key"))).alias("key"),
        fn.when(valid, value.cast("binary"))
        .otherwise(fn.when(kept, fn.col("value")))
        .alias("value"),
        fn.when(valid, accepted).otherwise(refused).alias("headers"),
        # A lab partition is the in partition, so that its newest origin says what it holds.
        fn.when(valid, fn.col("partition")).alias("partition"),
    )


def _lab_value(kind: Kind) -> Column:
    times = {place: fn.col(name) for place, name in _times(kind).items()}
    return texts.lab_value(fn.col(_TEXTS), times, kind.schema)


def _event_time(kind: Kind, name: str) -> Column:
    place = kind.schema.names.index(name) + 1
    return fn.col(_times(kind)[place])
