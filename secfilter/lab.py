"""Lab topics (lab.*): reads and writes their records as columns.

The value is the attributes in schema order, separated by U+001F. NULL is a single U+001E. Ingest
and expressions keep both characters out of all strings. The key is the origin of the tuple.

A tuple has one header, because each header costs time wherever the record is read and written. The
name of the header has the version of this form. Its value is the label. On a tuple of a stream, `;`
and the sender are behind it.

A tick is no tuple. It has a header of its own, and its value is a time (ms).

The key of a result is its id. If the result repeats a row that stands, `stands:` is before
the id. In the mark behind such rows, the id of the reader and a colon are between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.label import WORD_BITS, Label
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, AttributeType, Schema, Type, held_as
from catalog.topics import TICK_HEADER, TUPLE_HEADER
from secfilter.columns import (
    ECHO,
    ID,
    SENDER,
    TICK_COLUMN,
    ValueOf,
    attribute,
    label_column,
    words_of,
)
from secfilter.timeline import no_tick, tick_at

SEPARATOR, NULL_MARK = "\x1f", "\x1e"
_STANDS = "stands:"
_VALID, _TEXT, _TICK = "__valid", "__label_text", "__is_tick"
UNKNOWN_CATEGORY = "a tuple has a category that was added after the query started"
_BEFORE_SENDER = ";"
HEADERS_TYPE = "array<struct<key:string,value:binary>>"


def encode_value(schema: Schema, value_of: ValueOf = attribute) -> Column:
    """The record's value, as text, from a tuple's attributes. `value_of` gives each by its name."""
    return joined([encode_attribute(value_of(a.name), a.type) for a in schema.attributes])


def joined(texts: Sequence[Column]) -> Column:
    """The record's value from each attribute's text (`encode_attribute`)."""
    return fn.concat_ws(SEPARATOR, *texts)


def encode_attribute(value: Column, type_: AttributeType) -> Column:
    """One attribute as text, never NULL."""
    text = fn.unix_micros(value) if type_ is Type.TIMESTAMP else value
    return fn.coalesce(text.cast("string"), fn.lit(NULL_MARK))


def decode_value(value: Column, schema: Schema) -> list[Column]:
    """The attributes, each under its name, from a record's value (text)."""
    if len(schema.attributes) == 1:
        texts = [value]
    else:
        parts = fn.split(value, SEPARATOR, -1)
        texts = [fn.get(parts, fn.lit(index)) for index in range(len(schema.attributes))]
    pairs = zip(texts, schema.attributes, strict=True)
    return [_decode_attribute(text, a).alias(a.name) for text, a in pairs]


def _decode_attribute(text: Column, target: Attribute) -> Column:
    match held_as(target.type):
        case Type.STRING:
            return fn.when(text != fn.lit(NULL_MARK), text)
        case Type.TIMESTAMP:
            return fn.timestamp_micros(text.try_cast("bigint"))
        case Type.BOOLEAN | Type.BIGINT | Type.DOUBLE:
            return text.try_cast(str(target.type))


def label_text(headers: Column) -> Column:
    """The text of the label, or NULL if there is none or the record has another version."""
    return fn.substring_index(_label_and_sender(headers), _BEFORE_SENDER, 1)


def sender_of(headers: Column) -> Column:
    """The id of the sender (BIGINT), or NULL if there is none."""
    text = _label_and_sender(headers)
    sender = fn.substring_index(text, _BEFORE_SENDER, -1)
    return fn.when(fn.contains(text, fn.lit(_BEFORE_SENDER)), sender.try_cast("bigint"))


def _label_and_sender(headers: Column) -> Column:
    first = fn.get(headers, fn.lit(0))
    return fn.when(first["key"] == fn.lit(TUPLE_HEADER), first["value"].cast("string"))


def tick_record(time_ms: int) -> tuple[list[tuple[str, bytes]], bytes]:
    """The headers and the value of a tick. No tuple before that time (ms) comes behind it."""
    return [(TICK_HEADER, b"")], str(time_ms).encode()


def is_tick(headers: Column) -> Column:
    """Whether the record is a tick (never NULL)."""
    first = fn.get(headers, fn.lit(0))
    return fn.coalesce(first["key"] == fn.lit(TICK_HEADER), fn.lit(False))


def lab_headers(label: Column, sender: Column | None = None) -> Column:
    """The headers of a record of a lab topic, from the texts of its label and its sender."""
    text = label if sender is None else fn.concat(label, fn.lit(_BEFORE_SENDER), sender)
    return headers((TUPLE_HEADER, text))


def headers(*pairs: tuple[str, Column]) -> Column:
    """A record's headers, in this order, from their keys and texts."""
    made = [
        fn.struct(fn.lit(key).alias("key"), text.cast("binary").alias("value"))
        for key, text in pairs
    ]
    return fn.array(*made).cast(HEADERS_TYPE)


def encode_label(words: Mapping[int, Column]) -> Column:
    """The label in wire form from its words, lowest first, up to the last one that is not 0.

    A word that is left out is 0.
    """
    highest = max(words, default=0)
    texts = [
        words[index].cast("string") if index in words else fn.lit("0")
        for index in range(highest + 1)
    ]
    if len(texts) == 1:
        return texts[0]
    return short_label(fn.concat_ws(",", *texts), last=words[highest])


def short_label(text: Column, last: Column) -> Column:
    """The text of a label without the words at its end that are 0. `last` is its last word.

    Who reads it knows by the number of words whether it can have a category beyond its reach.
    """
    return fn.when(last == fn.lit(0), fn.regexp_replace(text, "(,0)+$", "")).otherwise(text)


def label_word(index: int) -> Column:
    """The label word at `index` of a tuple inside Spark."""
    return fn.col(label_column(index))


def decode_label(text: Column, reach: Label) -> dict[int, Column]:
    """All words up to the highest one of the reach. A word that is not exactly a number is NULL.

    Words that the text does not have are 0. If the text has more words, the first one is NULL.
    """
    count = max(words_of(reach)) + 1
    if count == 1:
        return {0: _word(text)}
    parts = fn.split(text, ",", -1)
    short = fn.when(fn.size(parts) <= count, fn.get(parts, fn.lit(0)))
    texts = [short, *(fn.coalesce(fn.get(parts, fn.lit(i)), fn.lit("0")) for i in range(1, count))]
    return {index: _word(part) for index, part in enumerate(texts)}


def _word(text: Column) -> Column:
    word = text.try_cast("bigint")
    # The cast accepts spaces and a plus sign, but a label must be exact.
    return fn.when(word.cast("string") == text, word)


def is_valid(words: dict[int, Column], relation: Relation, reach: Label) -> Column:
    """Whether the words are a label that a tuple of the relation can carry (never NULL).

    `reach` has all categories that a tuple can carry. Everything else is invalid: an unknown bit,
    and the empty label if the relation is not public.
    """
    plain_public = relation.public and relation.kind is RelationKind.STREAM
    allowed = Label(0) if plain_public else reach
    within = [
        word.bitwiseAND(fn.lit(~allowed.word(index)).cast("bigint")) == fn.lit(0)
        for index, word in words.items()
    ]
    conditions = within if relation.public else [*within, _any_bit(words)]
    return fn.coalesce(_all_of(conditions), fn.lit(False))


def _any_bit(words: dict[int, Column]) -> Column:
    together = words[0]
    for index in range(1, len(words)):
        together = together.bitwiseOR(words[index])
    return together != fn.lit(0)


def _all_of(conditions: Sequence[Column]) -> Column:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


def is_later(text: Column, registered: int) -> Column:
    """Whether a text is a label with a category from the bit `registered` on (never NULL)."""
    word, bit = divmod(registered, WORD_BITS)
    words = fn.split(text, ",", -1)
    later = (
        fn.get(words, fn.lit(word)).try_cast("bigint").bitwiseAND(fn.lit(-1 << bit).cast("bigint"))
    )
    # As a regular expression, because for a function over an array Spark generates no code: neither
    # for it nor for all that is computed beside it.
    higher = text.rlike(f"^([^,]*,){{{word + 1}}}.*[1-9]")
    is_label = text.rlike(r"^-?\d{1,19}(,-?\d{1,19})*$")
    return fn.coalesce(is_label & ((later != fn.lit(0)) | higher), fn.lit(False))


def read_lab(  # noqa: PLR0913  # each is known to another part of the caller
    records: DataFrame,
    relation: Relation,
    reach: Label,
    metric: str | None = None,
    registered: int | None = None,
    *,
    ticks: bool = False,
    senders: bool = False,
    beside: Mapping[str, Column] = MappingProxyType({}),
) -> DataFrame:
    """Read the tuples of a relation from the records of its lab topic (004 §3.2).

    The result has the relation's attributes, a column for each label word of `reach` (all
    categories that its tuples can carry), and the lineage `__id`. With `senders`, it also has the
    sender `__sender`. Records without a valid label are left out. With
    `metric`, the column `withheld` of the observation of that name counts them. Ticks are left out
    too. With `ticks`, they stay as rows of NULLs, and the column
    `secfilter.columns.TICK_COLUMN` has their time. Each row also has these columns of its
    record, `beside` its own. If `secfilter.columns.ECHO` is one of them, ticks stay, too.

    `registered` is the first bit that had no category when the reach was looked up. A category from
    there on may be in the relation's reach by now. So nobody knows whether its tuple is to be left
    out, and the batch fails before it is committed. Without `registered` the tuple is left out.
    """
    text = label_text(fn.col("headers"))
    words = decode_label(text, reach)
    tick = is_tick(fn.col("headers"))
    time = fn.when(tick, tick_at(fn.col("value").cast("string").try_cast("bigint")))
    read = records.select(
        tick.alias(_TICK),
        fn.coalesce(time, no_tick()).alias(TICK_COLUMN),
        fn.col("value").cast("string").alias("__value"),
        _lineage(relation).alias(ID),
        *([sender_of(fn.col("headers")).alias(SENDER)] if senders else ()),
        *(word.alias(label_column(index)) for index, word in words.items()),
        *([] if registered is None else [text.alias(_TEXT)]),
        *(column.alias(name) for name, column in beside.items()),
    )
    checked = read.withColumn(_VALID, is_valid({i: label_word(i) for i in words}, relation, reach))
    if metric is not None:
        unlabelled = ~fn.col(_VALID) & ~fn.col(_TICK)
        checked = checked.observe(metric, fn.count_if(unlabelled).alias("withheld"))
    valid = fn.col(_VALID) if registered is None else _or_fail(registered)
    is_tuple = valid & ~fn.col(_TICK)
    kept = checked.where(is_tuple | fn.col(_TICK) if ticks or ECHO in beside else is_tuple)
    # A tick has no attributes.
    value = fn.when(~fn.col(_TICK), fn.col("__value"))
    return kept.select(
        *decode_value(value, relation.schema),
        *(decoded_once(label_word(i)).alias(label_column(i)) for i in words_of(reach)),
        fn.col(ID),
        *([fn.col(SENDER)] if senders else ()),
        *([fn.col(TICK_COLUMN)] if ticks else []),
        *map(fn.col, beside),
    )


def decoded_once(word: Column) -> Column:
    """The label word, in a form that makes Spark take the record apart once.

    Spark would move the conditions of a query below the step that takes the record apart. It would
    then split the value once for each attribute in a condition, and again for the result, because
    it finds no common parts of conditions. But it moves nothing below a step with a column that is
    not deterministic. No plan leaves the label out. So its words have a condition that is always
    true, and that Spark does not simplify.
    """
    return fn.when(fn.spark_partition_id() >= fn.lit(0), word)


def _or_fail(registered: int) -> Column:
    failed = fn.raise_error(fn.lit(UNKNOWN_CATEGORY)).cast("boolean")
    later = is_later(fn.col(_TEXT), registered)
    return fn.when(fn.col(_VALID), fn.lit(True)).when(later, failed).otherwise(fn.lit(False))


def standing_key(id_: Column, reader: Column) -> Column:
    """The key of a record that repeats a row that stands, or is the mark for a reader.

    `reader` is the text of the reader's id, which is empty if it is no mark.
    """
    no_mark = reader == fn.lit("")
    mark = fn.concat(fn.lit(_STANDS), reader, fn.lit(":"), id_)
    return fn.when(no_mark, fn.concat(fn.lit(_STANDS), id_)).otherwise(mark)


def stands(lineage: str) -> bool:
    """Whether the lineage of a tuple is that of a record with such a key."""
    return lineage.partition(":")[2].startswith(_STANDS)


def marked_reader(lineage: str) -> int | None:
    """The reader for which the record with such a key is the mark, None if it is no mark.

    An id has no colon. A mark of an older program names no reader.
    """
    key = lineage.partition(":")[2]
    reader, colon, _ = key.removeprefix(_STANDS).partition(":")
    is_mark = key.startswith(_STANDS) and colon and reader.isdecimal()
    return int(reader) if is_mark else None


def _lineage(relation: Relation) -> Column:
    place = fn.concat_ws(":", fn.col("partition").cast("string"), fn.col("offset").cast("string"))
    # If a record is repeated after a crash, it has the same lineage as before.
    origin = fn.coalesce(fn.col("key").cast("string"), place)
    return fn.concat(fn.lit(f"{relation.object_id}:"), origin)
