"""A strict reading of JSON records: exactly one object, exactly the schema's fields and types.

`from_json` is no such check: it takes text after the object, unknown and repeated fields, and turns
a number into a string. So a record is parsed as a VARIANT (strict JSON, no repeated key), inside an
object whose last key is random, so that nothing can close it early. The VARIANT's own schema text,
whose keys are sorted, then says in one match whether fields and types are the schema's.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.schema import Attribute, Schema, Type
from secfilter import times
from secfilter.columns import SPARK_TYPES, quoted
from secfilter.texts import QUOTE

# What the VARIANT's schema calls the values that an attribute of the type may have.
_SHAPES: dict[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.BIGINT: "BIGINT",
    Type.DOUBLE: r"(?:BIGINT|DOUBLE|DECIMAL\(\d+,\d+\))",
    Type.STRING: "STRING",
}
_TIME_SHAPES = dict.fromkeys(TimeFormat, r"(?:BIGINT|DECIMAL\(\d+,\d+\))") | {
    TimeFormat.ISO: "STRING"
}
_WIRE_TYPES = {**SPARK_TYPES, Type.TIMESTAMP: "string"}
_BODY = "v"


def _nonce() -> str:
    # It sorts behind the body's key.
    return "z" + secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The object around a record, with a key that no sender knows."""

    nonce: str = field(default_factory=_nonce)

    def parse(self, text: Column) -> Column:
        """The record inside its envelope as a VARIANT; NULL where that is not JSON."""
        opened, closed = f'{{"{_BODY}":', f',"{self.nonce}":1}}'
        return fn.try_parse_json(fn.concat(fn.lit(opened), text, fn.lit(closed)))

    def shape(self, parsed: Column, schema: Schema, written: RecordFormat) -> Column:
        """What `parse` found, as text: the fields, sorted, with their types.

        Where unknown fields are ignored they are left out of it.
        """
        whole = fn.schema_of_variant(parsed)
        if written.unknown_fields is UnknownFields.QUARANTINE:
            return whole
        body = fn.schema_of_variant(fn.try_variant_get(parsed, f"$.{_BODY}", "variant"))
        # Nothing else stands in the envelope.
        alone = whole == self._around(body)
        known = fn.concat_ws(", ", *(_found(parsed, a.name) for a in _sorted(schema)))
        cut = self._around(fn.concat(fn.lit("OBJECT<"), known, fn.lit(">")))
        return fn.when(alone & body.startswith("OBJECT<"), cut).otherwise(whole)

    def _around(self, body: Column) -> Column:
        return fn.concat(fn.lit(f"OBJECT<{_BODY}: "), body, fn.lit(f", {self.nonce}: BIGINT>"))

    def fits(self, shape: Column, schema: Schema, written: RecordFormat) -> Column:
        """Whether `shape` is a tuple of `schema`."""
        fields = _fields(schema, written)
        return shape.rlike(rf"\AOBJECT<{_BODY}: OBJECT<{fields}{self.end}\z")

    @property
    def end(self) -> str:
        """What stands behind the fields of a record's shape."""
        return f">, {self.nonce}: BIGINT>"

    def right(self, schema: Schema, written: RecordFormat) -> str:
        """A pattern for what of a shape is as the schema says, up to the first field that is not.

        `end` follows where nothing is wrong but that a required field is missing.
        """
        return rf"\AOBJECT<{_BODY}: OBJECT<{_fields(schema, written, optional=True)}"

    def is_object(self, shape: Column) -> Column:
        """Whether exactly one JSON object was in the envelope."""
        # Quoted, a key of the sender's could hold anything: so it begins and ends as ours does.
        return shape.startswith(f"OBJECT<{_BODY}: OBJECT<") & shape.endswith(self.end)

    def found(self, shape: Column) -> Column:
        """What JSON was in the envelope (as its schema calls it); NULL where it was none."""
        return fn.when(shape.isNotNull(), fn.regexp_extract(shape, rf"\AOBJECT<{_BODY}: (\w+)", 1))

    def tuple_of(self, parsed: Column, schema: Schema) -> Column:
        """The attributes as a struct; timestamps are still text. Keep it in a column."""
        fields = ",".join(f"{quoted(a.name)}:{_WIRE_TYPES[a.type]}" for a in schema.attributes)
        return parsed.try_cast(f"struct<{_BODY}:struct<{fields}>>")[_BODY]


def texts_of(read: Column, schema: Schema, written: RecordFormat) -> Column:
    """The texts (`secfilter.texts`) of what `Envelope.tuple_of` read."""
    return fn.array(
        fn.lit(""), *(_text(read[a.name], a.type, written.times) for a in schema.attributes)
    )


def _text(value: Column, type_: Type, written: TimeFormat) -> Column:
    match type_:
        case Type.STRING:
            text = fn.concat(fn.lit(QUOTE), value)
        case Type.TIMESTAMP:
            text = fn.when(value.isNotNull(), times.checked_text(value, written))
        case Type.BOOLEAN | Type.BIGINT | Type.DOUBLE:
            text = value.cast("string")
    return fn.coalesce(text, fn.lit(""))


def _sorted(schema: Schema) -> list[Attribute]:
    return sorted(schema.attributes, key=lambda a: a.name)


def _found(parsed: Column, name: str) -> Column:
    """The field as the VARIANT's schema lists it; NULL where there is none."""
    value = fn.try_variant_get(parsed, f"$.{_BODY}.{name}", "variant")
    return fn.concat(fn.lit(f"{name}: "), fn.schema_of_variant(value))


def _fields(schema: Schema, written: RecordFormat, *, optional: bool = False) -> str:
    """A pattern for the fields as the VARIANT's schema lists them: sorted, each once.

    With `optional` none of them needs to be there.
    """
    # Possessive: a field that is there cannot be skipped to try again, so matching is linear.
    return "".join(
        f"(?:{_field(a, written)}(?:, |(?=>))){'' if a.required and not optional else '?+'}"
        for a in _sorted(schema)
    )


def _field(attribute: Attribute, written: RecordFormat) -> str:
    is_time = attribute.type is Type.TIMESTAMP
    shape = _TIME_SHAPES[written.times] if is_time else _SHAPES[attribute.type]
    return f"{re.escape(attribute.name)}: {shape if attribute.required else f'(?:{shape}|VOID)'}"
