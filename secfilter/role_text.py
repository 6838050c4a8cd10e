"""Role expressions in ingest: the text that the label rule gives for a record, and its label.

Only fixed texts have a label here. A record with another text is parked, and the platform sends it
again through a sender of its own, the one that readmits. Such a record has the headers `timestamp`,
`sender` and `label`, in this order. Nobody else can write that sender's topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label_rule import ByExpression, ByHeader, BySender
from catalog.role_expression import MAX_CHARACTERS
from catalog.topics import LABEL_HEADER, SENDER_HEADER, TAKEN_HEADER
from secfilter.rule_columns import value_of
from secfilter.stream_group import SENDER, STREAM, Kind, StreamGroup

# The text of the record's role expression, or NULL if there is none.
ROLES = "__roles"
HEADERS = "headers"
_SEPARATOR = "\x1f"


def with_first_times(records: DataFrame, group: StreamGroup) -> DataFrame:
    """The records, each with the time at which the broker took it before it was parked."""
    first = _header(group, 0, TAKEN_HEADER).try_cast("bigint")
    return records.withColumn(
        "timestamp", fn.coalesce(fn.timestamp_millis(first), fn.col("timestamp"))
    )


def role_text(group: StreamGroup) -> Column:
    """The value of the column `ROLES`, over the columns of `rule_columns.decoded`."""
    return group.by_kind(lambda kind: _text(kind, group))


def wrong(group: StreamGroup) -> Column:
    """Why the record has no usable role expression, or NULL if it has one or needs none."""
    text = fn.col(ROLES)
    long = fn.when(
        fn.length(text) > MAX_CHARACTERS,
        f"role expression: it has more than {MAX_CHARACTERS} characters",
    )
    missing = group.by_kind(lambda kind: fn.when(text.isNull(), _missing(kind)))
    # What was parked had one.
    return fn.when(~is_readmitted(group), fn.coalesce(missing, long))


def label_text(group: StreamGroup) -> Column:
    """The text of the record's label, or NULL if its role expression is not known here."""
    own = group.each(lambda s: s.label.to_wire())
    if not group.ruled:
        return own
    labels = {
        f"{number}{_SEPARATOR}{text}": (stream.label | label).to_wire()
        for number, stream in enumerate(group.streams)
        for text, label in stream.texts
    }
    ruled = group.each(lambda s: s.rule is not None)
    known = fn.coalesce(_header(group, 2, LABEL_HEADER), _looked_up(labels))
    return fn.when(ruled, known).otherwise(own)


def sender_id(group: StreamGroup) -> Column:
    """The id of the sender whose record it is, also if the record was parked."""
    return fn.coalesce(_header(group, 1, SENDER_HEADER), group.sender_id())


def is_readmitted(group: StreamGroup) -> Column:
    """Whether the platform has sent the record, which was parked (never NULL)."""
    flags = fn.array(*(fn.lit(sender.readmits) for sender in group.senders))
    return fn.coalesce(fn.get(flags, fn.col(SENDER)), fn.lit(False))


def _header(group: StreamGroup, place: int, key: str) -> Column:
    """The text of a header that the platform has written, or NULL on a record of anybody else."""
    header = fn.get(fn.col(HEADERS), fn.lit(place))
    written = is_readmitted(group) & (header["key"] == fn.lit(key))
    return fn.when(written, header["value"].cast("string"))


def _looked_up(labels: Mapping[str, str]) -> Column:
    if not labels:
        return fn.lit(None).cast("string")
    pairs = [fn.lit(part) for pair in labels.items() for part in pair]
    key = fn.concat_ws(_SEPARATOR, fn.col(STREAM).cast("string"), fn.col(ROLES))
    return fn.try_element_at(fn.create_map(*pairs), key)


def _text(kind: Kind, group: StreamGroup) -> Column:
    match kind.rule:
        case BySender():
            policies = fn.array(*(fn.lit(s.policy).cast("string") for s in group.senders))
            return fn.get(policies, fn.col(SENDER))
        case ByHeader(name):
            own = fn.filter(fn.col(HEADERS), lambda header: header["key"] == fn.lit(name))
            value = fn.get(own, fn.lit(0))["value"]
            once = (fn.size(own) == fn.lit(1)) & fn.is_valid_utf8(value.cast("string"))
            return fn.when(once, value.cast("string"))
        case ByExpression(expression):
            return value_of(kind, expression)
        case None:
            return fn.lit(None).cast("string")


def _missing(kind: Kind) -> Column:
    match kind.rule:
        case BySender():
            why: str | None = "role expression: its sender has set no policy in this stream"
        case ByHeader(name):
            why = f"role expression: the record must have the header {name} once, as UTF-8 text"
        case ByExpression():
            why = "role expression: the stream's label rule gives none for this record"
        case None:
            why = None
    return fn.lit(why).cast("string")
