"""Fan-out: writes each result to the topics of all classes that may see it (004 §3.2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from itertools import groupby

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.functions import MAX_TEXT_BYTES
from catalog.label_layout import LabelLayout
from catalog.plan import DELETED, INSTANT
from catalog.runs import FedOutput, QueryRun
from catalog.schema import Attribute, AttributeType, Schema, Type, held_as
from catalog.topics import (
    FENCE_HEADER,
    ID_HEADER,
    LABEL_HEADER,
    LEFT_OUT_HEADER,
    RESULT_ECHO_TOPIC,
    ROW_VERSION_HEADER,
)
from secfilter.beginnings import having_begun, with_parts
from secfilter.columns import BEGUN, CLASS, ECHO, GIVEN_TO, ID, LEFT_OUT, ValueOf, attribute
from secfilter.compiler import Compiled
from secfilter.expressions import finite
from secfilter.given_to import goes_to, reader_in, stands_again
from secfilter.lab import (
    encode_label,
    encode_value,
    headers,
    lab_headers,
    label_word,
    standing_key,
)
from secfilter.label_words import unpacked_words, words
from secfilter.nested import TIME_FORMAT
from secfilter.visibility import in_layout, visible_to

_ID_DIGITS = 32
TOO_LARGE = "too_large"
DEFAULT_MAX_BYTES = MAX_TEXT_BYTES
_TOPIC, _JSON, _LAB, _KEYED, _LABEL = "topic", "__json", "__lab", "__keyed", "__wire"
_LARGE = "__large"
_KEY, _VERSION, _DELETED = "__key", "__version", "__deleted"


def fan_out(
    compiled: Compiled,
    run: QueryRun,
    id_key: str,
    max_bytes: int = DEFAULT_MAX_BYTES,
    late: Sequence[FedOutput] = (),
    *,
    echoes: bool = False,
) -> DataFrame:
    """Records for Kafka's sink: `topic`, `key`, `value`, `headers`.

    There is one record for each class that may see the tuple, and one for lab.<output> of each
    output that is labelled. A tuple larger than `max_bytes` as JSON is delivered to nobody, because
    the broker would refuse it and stop the query. The observation `too_large` counts these tuples.
    The outputs in `late` get only tuples that came after their beginning, and one that moves gets
    its part of the results (`secfilter.beginnings`). With `echoes`, there is also one record for
    each tick, which is no result: its echo (`secfilter.output_ticker`).
    """
    layout = compiled.layout
    own = words(layout)
    own_part = having_begun(late)
    parts = with_parts(compiled.frame, run, compiled.event_time)
    own_part |= {name: fn.col(column) for name, column in parts.columns.items()}
    upserts = bool(compiled.keys)
    conditions = _takers(run, layout)
    for output in run.outputs:
        for c in output.classes:
            part = own_part.get(output.relation.name)
            if part is not None and c.topic in conditions:
                conditions[c.topic] = conditions[c.topic] & part
    if upserts:
        conditions = {topic: taken & goes_to(topic) for topic, taken in conditions.items()}
    if echoes:
        conditions = {t: taken & fn.col(ECHO).isNull() for t, taken in conditions.items()}
    if compiled.tells:
        weak = {each.topic for each in run.classes if each.weak}
        conditions = {t: c & _is_result() if t in weak else c for t, c in conditions.items()}
    # If the texts are too long together, they are not even joined.
    fits = text_bytes(compiled.schema) <= fn.lit(max_bytes)
    value = fn.when(fits, to_json(compiled.schema))
    if compiled.tells:
        value = fn.when(_is_result(), value)
    if conditions:
        value = fn.when(reduce(lambda a, b: a | b, conditions.values()), value)
    # JSON, label and ids are computed once for each row, before the row is multiplied.
    made = parts.results.select(
        *(label_word(index) for index in own),
        *([] if run.viewers is None else [fn.col(CLASS)]),
        value.alias(_JSON),
        *(
            keyed_id(id_key, fn.lit(output.relation.name)).alias(_keyed(number))
            for number, output in enumerate(run.outputs)
        ),
        encode_label(unpacked_words(layout)).alias(_LABEL),
        (~fits).alias(_LARGE),
        *([fn.when(fits, encode_value(compiled.schema)).alias(_LAB)] if run.labelled else []),
        *([fn.col(BEGUN)] if late else []),
        *map(fn.col, parts.columns.values()),
        *([fn.col(ECHO)] if echoes else []),
        *([fn.col(LEFT_OUT)] if compiled.tells else []),
        *_key_and_version(compiled),
    )
    for output in run.outputs:
        if output.labelled:
            part = own_part.get(output.relation.name, fn.lit(True))
            is_result = fn.col(ECHO).isNull() if echoes else fn.lit(True)
            is_result = is_result & _is_result() if compiled.tells else is_result
            topic = output.relation.topic
            conditions[topic] = part & is_result & (goes_to(topic) if upserts else fn.lit(True))
    if echoes:
        conditions[RESULT_ECHO_TOPIC] = fn.col(ECHO).isNotNull()
    texts = [_JSON, *([_LAB] if run.labelled else []), *([_KEY] if upserts else [])]
    within = _within(made, max_bytes, texts)
    return _delivered(within, run, conditions, upserts=upserts, tells=compiled.tells)


def _is_result() -> Column:
    """Whether a row is a result, and no tuple that was left out."""
    return fn.col(LEFT_OUT).isNull()


def _takers(run: QueryRun, layout: LabelLayout) -> dict[str, Column]:
    """The topics of the classes, each with the condition by which its class takes a result.

    With views, each result is of one of them. That the view covers it is checked once more. A class
    has several views if they are those of its roles.
    """
    own, sources = words(layout), layout.packed(run.sources)
    if run.viewers is None:
        return {c.topic: visible_to(in_layout(c, layout), own, sources) for c in run.classes}
    found: dict[str, Column] = {}
    for view in run.viewers:
        covered = visible_to(in_layout(view, layout), own, sources)
        taken = (fn.col(CLASS) == fn.lit(view.id)) & covered
        before = found.get(view.topic)
        found[view.topic] = taken if before is None else before | taken
    return found


def _key_and_version(compiled: Compiled) -> list[Column]:
    """The key and the version of an upsert, whether it is a deletion, and to whom it goes."""
    if not compiled.keys:
        return []
    own = [each for each in compiled.schema.attributes if each.name in compiled.keys]
    version = fn.unix_micros(attribute(INSTANT)).cast("string")
    return [
        to_json(Schema(tuple(own))).alias(_KEY),
        version.alias(_VERSION),
        attribute(DELETED).alias(_DELETED),
        fn.col(GIVEN_TO),
    ]


def _keyed(number: int) -> str:
    """The column with the id of a result of that output of the run."""
    return f"{_KEYED}_{number}"


def _within(made: DataFrame, max_bytes: int, texts: Sequence[str]) -> DataFrame:
    large = fn.col(_LARGE)
    for text in texts:
        longer = fn.octet_length(fn.col(text)) > fn.lit(max_bytes)
        large = large | fn.coalesce(longer, fn.lit(False))
    observed = made.observe(TOO_LARGE, fn.count_if(large).alias("withheld"))
    return observed.where(~large)


def text_bytes(schema: Schema, value_of: ValueOf = attribute) -> Column:
    """The length of a tuple's strings and nested values together, in bytes. Its JSON is longer."""
    lengths = [
        fn.coalesce(fn.octet_length(value_of(a.name)), fn.lit(0)).cast("bigint")
        for a in schema.attributes
        if held_as(a.type) is Type.STRING
    ]
    return reduce(lambda a, b: a + b, lengths, fn.lit(0).cast("bigint"))


def _delivered(
    made: DataFrame, run: QueryRun, conditions: dict[str, Column], *, upserts: bool, tells: bool
) -> DataFrame:
    topics = [fn.when(taken, fn.lit(topic)) for topic, taken in conditions.items()]
    if not topics:
        topics.append(_nowhere(run))
    spread = made.withColumn(_TOPIC, fn.explode(fn.array(*topics)))
    addressed = spread.where(fn.col(_TOPIC).isNotNull())
    wire = (LABEL_HEADER, fn.col(_LABEL))
    key, value, id_ = fn.lit(None).cast("string"), fn.col(_JSON), _id_for_topic(run)
    own = [wire, (ID_HEADER, id_)]
    if upserts:
        # A deletion is a tombstone: it has a key and no value.
        key, value = fn.col(_KEY), fn.when(~fn.col(_DELETED), value)
        own.append((ROW_VERSION_HEADER, fn.col(_VERSION)))
    marks = headers(*own)
    if tells:
        # It has neither key nor value, and the header of fences. So every client skips it that does
        # not look for it.
        key = fn.when(_is_result(), key)
        marked = ((LEFT_OUT_HEADER, fn.col(LEFT_OUT)), (FENCE_HEADER, fn.lit("")))
        told = headers(wire, (ID_HEADER, id_), *marked)
        marks = fn.when(_is_result(), marks).otherwise(told)
    if run.labelled:
        inside = fn.col(_TOPIC).isin([o.relation.topic for o in run.outputs if o.labelled])
        # Do not use the lineage here: it has a window's keys, and grows from query to query.
        again = standing_key(id_, reader_in()) if upserts else id_
        own_key = fn.when(stands_again(), again).otherwise(id_) if upserts else id_
        key = fn.when(inside, own_key).otherwise(key)
        value = fn.when(inside, fn.col(_LAB)).otherwise(value)
        marks = fn.when(inside, lab_headers(fn.col(_LABEL))).otherwise(marks)
    if RESULT_ECHO_TOPIC in conditions:
        echo = fn.col(_TOPIC) == fn.lit(RESULT_ECHO_TOPIC)
        key = fn.when(~echo, key)
        value = fn.when(echo, fn.col(ECHO)).otherwise(value)
        marks = fn.when(~echo, marks)
    return addressed.select(_TOPIC, key.alias("key"), value.alias("value"), marks.alias("headers"))


def _id_for_topic(run: QueryRun) -> Column:
    """The id that a result has in the topic. Ids of two outputs tell nothing of each other."""
    found = fn.col(_keyed(0))
    for number, output in enumerate(run.outputs[1:], start=1):
        own = fn.col(_TOPIC).isin(sorted(output.topics))
        found = fn.when(own, fn.col(_keyed(number))).otherwise(found)
    return found


def _nowhere(run: QueryRun) -> Column:
    """No topic, in a form that still depends on all columns.

    Spark leaves out columns that nobody reads, also from the state of an aggregate. But the state
    must not change its shape when the first class comes.
    """
    ids = (fn.col(_keyed(number)) for number in range(len(run.outputs)))
    everything = fn.concat_ws("", fn.col(_JSON), fn.col(_LABEL), *ids)
    return fn.when(fn.octet_length(everything) < fn.lit(0), fn.lit("nowhere"))


def keyed_id(key: str, output: Column) -> Column:
    """The id of a result of the output with that name.

    Equal lineages have equal ids, and an id reveals nothing without the key.
    """
    text = fn.concat(fn.lit(f"{key}\x1f"), output, fn.lit("\x1f"), fn.col(ID))
    # As bytes, because of a text Spark counts the characters one by one.
    digits = fn.sha2(text, 256).cast("binary")
    return fn.substring(digits, 1, _ID_DIGITS).cast("string")


def to_json(schema: Schema, value_of: ValueOf = attribute) -> Column:
    """The tuple as a JSON object, with its NULL attributes.

    A nested value is in it as it is held, because that is JSON.
    """
    parts = []
    for is_plain, several in groupby(schema.attributes, lambda a: isinstance(a.type, Type)):
        if is_plain:
            parts.append(_plain_json(tuple(several), value_of))
        else:
            parts += [_nested_json(each.name, value_of(each.name)) for each in several]
    if len(parts) == 1 and isinstance(schema.attributes[0].type, Type):
        return parts[0]
    inner = [fn.substring(each, fn.lit(2), fn.length(each) - fn.lit(2)) for each in parts]
    return fn.concat(fn.lit("{"), fn.concat_ws(",", *inner), fn.lit("}"))


def _plain_json(attributes: Sequence[Attribute], value_of: ValueOf) -> Column:
    values = [_json_value(value_of(a.name), a.type).alias(a.name) for a in attributes]
    options = {"ignoreNullFields": "false", "timestampFormat": TIME_FORMAT, "timeZone": "UTC"}
    return fn.to_json(fn.struct(*values), options)


def _nested_json(name: str, value: Column) -> Column:
    opened = fn.lit(f"{{{json.dumps(name)}:")
    return fn.concat(opened, fn.coalesce(value, fn.lit("null")), fn.lit("}"))


def _json_value(value: Column, type_: AttributeType) -> Column:
    return finite(value) if type_ is Type.DOUBLE else value
