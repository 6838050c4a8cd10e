"""Ingest: checks and labels the records of in topics and writes them to lab topics (004 §3.2).

The topic of a record says who sent it. Nothing in the record does. A record that does not fit the
stream's schema goes to quarantine.<stream> unchanged, with the reason. A record whose role
expression is not known here goes to parked.<stream>. If it is too large for that
topic, only its sizes are kept, without key and value. One Spark query serves a group of streams.
Values that differ between streams are looked up by the topic. Rules that differ between schemas are
a CASE (`secfilter.stream_group`).

Ticks of the query's own life are echoed to `time.echo`. All other ticks are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.run_counts import refused_kind
from catalog.runs import IngestRun
from catalog.topics import (
    ECHO_TOPIC,
    REASON_HEADER,
    ROLES_HEADER,
    SENDER_HEADER,
    TAKEN_HEADER,
    lab_topic,
    parked_topic,
    quarantine_topic,
)
from secfilter import (
    companies,
    floors,
    quick_json,
    role_text,
    rule_columns,
    strict_json,
    texts,
    times,
)
from secfilter.added_labels import with_added
from secfilter.fanout import DEFAULT_MAX_BYTES
from secfilter.lab import headers, lab_headers
from secfilter.refusal import (
    FAULTY,
    QUICK,
    SHAPE,
    TEXT,
    TEXTS,
    is_refused,
    text_at,
    times_of,
    words,
)
from secfilter.role_text import HEADERS, ROLES
from secfilter.stream_group import KIND, SENDER, STREAM, Kind, StreamGroup, is_kind
from secfilter.strict_json import Envelope
from secfilter.tick_mark import TickMark

# Id of a sender -> partition -> the newest offset of its topic that lab.<stream> may hold.
Newest = Mapping[int, Mapping[int, int]]
_REFUSED, _REASON, _LABEL = "__refused", "__reason", "__label"
# Columns with the results of the quick reading and of the strict reading.
_DENSE, _APART, _JSON = "__dense", "__apart", "__json"
_RAW = ("key", "value", "partition", "offset", "timestamp")


def in_topics(run: IngestRun) -> list[str]:
    """The topics that the run reads."""
    return [sender.topic for stream in run.streams for sender in stream.senders]


def ingest(
    records: DataFrame,
    run: IngestRun,
    newest: Newest,
    ticks: TickMark | None = None,
    counted: str | None = None,
) -> DataFrame:
    """Make records for Kafka's sink from records of its source.

    The result has `topic`, `key`, `value`, `headers` and `partition`.

    `newest` are the newest origins in lab topics. Records up to them are left out, so that a crash
    puts no tuple into lab twice. (The quarantine may get a record twice.) `ticks` is the mark of
    ticks; without it there are none. With `counted`, the observation of that name counts what goes
    to each stream's quarantine (`catalog.run_counts.refused_kind`).
    """
    envelope, group = Envelope(), StreamGroup.of(run.streams)
    if ticks is not None:
        records = records.where(~_is_foreign_tick(ticks))
    parsed = _parsed(records, group, envelope)
    timed = parsed.select("*", *(column for kind in group.kinds for column in _timed(kind)))
    dated = timed.select("*", group.by_kind(_faulty_time).alias(FAULTY))
    times_read = [name for kind in group.kinds for name in times_of(kind).values()]
    kept = [*_read(group), TEXTS, *times_read]
    if group.ruled or group.levelled:
        dated = _with_rules(dated, group)
        kept += [*([ROLES] if group.ruled else []), *companies.columns(group)]
    refused, label = is_refused(group, envelope), role_text.label_text(group)
    if group.levelled or group.floored:
        label = with_added(label, [*companies.added(group), floors.added(group)])
    checked = dated.select(*kept, QUICK, FAULTY, refused.alias(_REFUSED), label.alias(_LABEL))
    new = checked.where(~_repeated(group, newest))
    reason = words(fn.col(_REFUSED), group, envelope).alias(_REASON)
    worded = new.select(*kept, _REFUSED, _LABEL, reason)
    ways = _Ways.of(group, ticks)
    if counted is not None:
        # Spark generates no code for an observation, as for the words before it. Beside them it
        # does not part the code behind them once more.
        worded = worded.observe(counted, *_refused_counts(run, ways))
    return _addressed(worded, group, ticks, ways)


def _read(group: StreamGroup) -> list[str]:
    return [*_RAW, *([HEADERS] if group.ruled else []), SENDER, STREAM, KIND]


def _with_rules(dated: DataFrame, group: StreamGroup) -> DataFrame:
    """The records with what their label rules and level rules give."""
    read = [
        column
        for kind in group.kinds
        for column in rule_columns.decoded(kind, fn.col(TEXTS), times_of(kind))
    ]
    roles = [role_text.role_text(group).alias(ROLES)] if group.ruled else []
    return dated.select("*", *read).select("*", *roles, *companies.texts(group))


def _parsed(records: DataFrame, group: StreamGroup, envelope: Envelope) -> DataFrame:
    raw = _read(group)[: -len((SENDER, STREAM, KIND))]
    sent = records.select(*raw, group.sender(fn.col("topic")).alias(SENDER))
    if group.ruled:
        sent = role_text.with_first_times(sent, group)
    numbered = sent.select("*", group.stream().alias(STREAM))
    known = numbered.select("*", group.kind().alias(KIND))
    # A record that is too large is not read at all.
    text = fn.when(
        fn.octet_length("value") <= group.each(lambda s: s.max_bytes),
        fn.col("value").cast("string"),
    )
    decoded = known.select("*", text.alias(TEXT))
    dense = decoded.select("*", _apart(group, blanks=False).alias(_DENSE))
    apart = fn.when(quick_json.is_apart(fn.col(_DENSE)), fn.col(_DENSE))
    tried = dense.select("*", apart.otherwise(_apart(group, blanks=True)).alias(_APART))
    usual = quick_json.is_usual(fn.col(TEXT), fn.col(_APART))
    sorted_out = tried.select("*", usual.alias(QUICK))
    # This is enough for most records. The others are parsed, if they are UTF-8.
    parsable = ~fn.col(QUICK) & fn.is_valid_utf8(fn.col(TEXT))
    json = fn.when(parsable, envelope.parse(fn.col(TEXT)))
    parsed = sorted_out.select("*", json.alias(_JSON))
    strict = parsed.select(
        "*",
        group.by_kind(lambda k: envelope.shape(fn.col(_JSON), k.schema, k.written)).alias(SHAPE),
        *(_strict(envelope, kind) for kind in group.kinds),
    )
    texts_of = group.by_kind(
        lambda kind: strict_json.texts_of(fn.col(_tuple(kind)), kind.schema, kind.written)
    )
    both = fn.when(fn.col(QUICK), quick_json.texts_of(fn.col(_APART))).otherwise(texts_of)
    return strict.select(*_read(group), TEXT, QUICK, SHAPE, both.alias(TEXTS))


def _apart(group: StreamGroup, *, blanks: bool) -> Column:
    text = fn.col(TEXT)
    return group.by_kind(
        lambda k: quick_json.taken_apart(text, k.schema, k.written.times, blanks=blanks)
    )


def _tuple(kind: Kind) -> str:
    return f"__tuple_{kind.number}"


def _strict(envelope: Envelope, kind: Kind) -> Column:
    read = envelope.tuple_of(fn.col(_JSON), kind.schema)
    return fn.when(is_kind(kind), read).alias(_tuple(kind))


def _timed(kind: Kind) -> list[Column]:
    written = kind.written.times
    return [
        fn.when(is_kind(kind), times.read(text_at(place), written)).alias(name)
        for place, name in times_of(kind).items()
    ]


def _faulty_time(kind: Kind) -> Column:
    """The place of the first invalid time, or NULL if all times are valid."""
    return texts.first_place(
        {
            place: times.is_faulty(text_at(place), fn.col(name))
            for place, name in times_of(kind).items()
        }
    )


def _repeated(group: StreamGroup, newest: Newest) -> Column:
    """Whether a valid record is in its lab topic already.

    A record that is parked is not: what its lab topic holds tells nothing of it. If it is parked
    twice, it is taken once (`secadmin.control.readmission`).
    """
    held = group.by_partition(lambda sender: newest.get(sender.id, {}))
    goes_to_lab = ~fn.col(_REFUSED) & fn.col(_LABEL).isNotNull()
    return goes_to_lab & fn.coalesce(fn.col("offset") <= held, fn.lit(False))


def _is_foreign_tick(ticks: TickMark) -> Column:
    """Whether the record is a tick of another life."""
    own, mark = fn.lit(bytearray(ticks.value)), fn.lit(bytearray(ticks.mark))
    foreign = fn.startswith("value", mark) & (fn.col("value") != own)
    return fn.coalesce(foreign, fn.lit(False))


def _is_tick(ticks: TickMark | None) -> Column:
    if ticks is None:
        return fn.lit(False)
    return fn.coalesce(fn.col("value") == fn.lit(bytearray(ticks.value)), fn.lit(False))


def _echo(ticks: TickMark | None, group: StreamGroup) -> Column:
    """The echo of a tick (`secfilter.echo`)."""
    life = "" if ticks is None else ticks.life
    place = (fn.col(name).cast("string") for name in ("partition", "offset"))
    time = fn.unix_millis("timestamp").cast("string")
    return fn.concat_ws(":", fn.lit(life), group.sender_id(), *place, time)


@dataclass(frozen=True, slots=True)
class _Ways:
    """Whether a record goes to lab, is parked, or is a tick. All others go to quarantine."""

    valid: Column
    parked: Column
    tick: Column

    @classmethod
    def of(cls, group: StreamGroup, ticks: TickMark | None) -> _Ways:
        # A tick is no tuple of any stream, so it is refused like any other record that is none.
        fits, label = ~fn.col(_REFUSED), fn.col(_LABEL)
        parked = fn.lit(False)
        if group.ruled:
            parked = fits & label.isNull() & ~role_text.is_readmitted(group)
        return cls(fits & label.isNotNull(), parked, _is_tick(ticks))


def _refused_counts(run: IngestRun, ways: _Ways) -> Iterator[Column]:
    """For each stream, how many records go to its quarantine."""
    refused = ~ways.valid & ~ways.parked & ~ways.tick
    for number, stream in enumerate(run.streams):
        of_stream = refused & (fn.col(STREAM) == fn.lit(number))
        yield fn.count_if(of_stream).alias(refused_kind(stream.relation.object_id))


def _addressed(
    checked: DataFrame, group: StreamGroup, ticks: TickMark | None, ways: _Ways
) -> DataFrame:
    valid, parked, tick, label = ways.valid, ways.parked, ways.tick, fn.col(_LABEL)
    place = {name: fn.col(name).cast("string") for name in ("partition", "offset")}
    sender = role_text.sender_id(group) if group.ruled else group.sender_id()
    origin = fn.concat_ws(":", group.sender_id(), place["partition"], place["offset"])
    accepted = lab_headers(label, sender)
    size = fn.coalesce(fn.octet_length("key"), fn.lit(0)) + fn.coalesce(
        fn.octet_length("value"), fn.lit(0)
    )
    # A compressed record may be too large for any topic when it is unpacked. It would stop the
    # group.
    kept = size <= fn.lit(DEFAULT_MAX_BYTES)
    why = (
        (REASON_HEADER, fn.coalesce(fn.col(_REASON), fn.lit("its label is missing"))),
        (SENDER_HEADER, sender),
        *place.items(),
        ("timestamp", fn.unix_millis("timestamp").cast("string")),
    )
    refused = fn.when(kept, headers(*why)).otherwise(headers(*why, ("size", size.cast("string"))))
    waits = headers(
        (TAKEN_HEADER, fn.unix_millis("timestamp").cast("string")),
        (SENDER_HEADER, sender),
        *place.items(),
        (ROLES_HEADER, fn.col(ROLES) if group.ruled else fn.lit("")),
    )
    value = group.by_kind(_lab_value)
    return checked.select(
        fn.when(valid, group.each(lambda s: lab_topic(s.relation.name)))
        .when(parked, group.each(lambda s: parked_topic(s.relation.name)))
        .when(tick, fn.lit(ECHO_TOPIC))
        .otherwise(group.each(lambda s: quarantine_topic(s.relation.name)))
        .alias("topic"),
        fn.when(valid, origin.cast("binary")).otherwise(fn.when(kept, fn.col("key"))).alias("key"),
        fn.when(valid, value.cast("binary"))
        .when(tick, _echo(ticks, group).cast("binary"))
        .otherwise(fn.when(kept, fn.col("value")))
        .alias("value"),
        fn.when(valid, accepted).when(parked, waits).otherwise(refused).alias("headers"),
        # Lab and in partition are equal, so the newest origin in it says what it holds.
        fn.when(valid | parked, fn.col("partition")).alias("partition"),
    )


def _lab_value(kind: Kind) -> Column:
    times = {place: fn.col(name) for place, name in times_of(kind).items()}
    return texts.lab_value(fn.col(TEXTS), times, kind.schema)
