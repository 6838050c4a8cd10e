"""The strict reading of JSON records: exactly one object, exactly the schema's fields and types.

`from_json` is not strict. It accepts text after the object, unknown fields and repeated fields, and
it turns a number into a string. So a record is parsed as a VARIANT (strict JSON, no repeated key).
It is put inside an object whose last key is random, so that no record can close this object early.
The VARIANT has a schema text with sorted keys. One match of this text shows whether the fields and
types are those of the schema.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.schema import Attribute, AttributeType, Schema, Type
from secfilter import times
from secfilter.columns import quoted
from secfilter.nested import spark_type
from secfilter.nested_records import held_form, is_nested, mistake
from secfilter.shapes import shape_of
from secfilter.texts import QUOTE

_BODY = "v"
# The fields in the shape of a tuple with nested attributes. No key of a record has this name.
_RIGHT = ": TUPLE"


def _nonce() -> str:
    # It sorts after the body's key.
    return "z" + secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The object around a record, with a key that no sender knows."""

    nonce: str = field(default_factory=_nonce)

    def parse(self, text: Column) -> Column:
        """The record inside its envelope as a VARIANT, or NULL if that is not JSON."""
        opened, closed = f'{{"{_BODY}":', f',"{self.nonce}":1}}'
        return fn.try_parse_json(fn.concat(fn.lit(opened), text, fn.lit(closed)))

    def shape(self, parsed: Column, schema: Schema, written: RecordFormat) -> Column:
        """The shape of what `parse` found, as text: the sorted fields with their types.

        If unknown fields are ignored, they are left out. With nested attributes it is one text for
        all tuples.
        """
        whole = self.whole(parsed)
        if is_nested(schema):
            right = fn.when(self.is_alone(parsed), self.mistake(parsed, schema, written).isNull())
            return fn.when(right, self._around(fn.lit(f"OBJECT<{_RIGHT}>"))).otherwise(whole)
        if written.unknown_fields is UnknownFields.QUARANTINE:
            return whole
        known = fn.concat_ws(", ", *(_found(parsed, a.name) for a in _sorted(schema)))
        cut = self._around(fn.concat(fn.lit("OBJECT<"), known, fn.lit(">")))
        return fn.when(self.is_alone(parsed), cut).otherwise(whole)

    def whole(self, parsed: Column) -> Column:
        """The shape of all that was in the envelope, and of the envelope."""
        return fn.schema_of_variant(parsed)

    def is_alone(self, parsed: Column) -> Column:
        """Whether the record is an object, and nothing else was in the envelope."""
        body = fn.schema_of_variant(_body(parsed))
        return (self.whole(parsed) == self._around(body)) & body.startswith("OBJECT<")

    def mistake(self, parsed: Column, schema: Schema, written: RecordFormat) -> Column:
        """Why the record is no tuple of a schema with nested attributes, or NULL."""
        return mistake(_body(parsed), schema, written)

    def _around(self, body: Column) -> Column:
        return fn.concat(fn.lit(f"OBJECT<{_BODY}: "), body, fn.lit(f", {self.nonce}: BIGINT>"))

    def fits(self, shape: Column, schema: Schema, written: RecordFormat) -> Column:
        """Whether `shape` is a tuple of `schema`."""
        fields = _RIGHT if is_nested(schema) else _fields(schema, written)
        return shape.rlike(rf"\AOBJECT<{_BODY}: OBJECT<{fields}{self.end}\z")

    @property
    def end(self) -> str:
        """The text after the fields of a record's shape."""
        return f">, {self.nonce}: BIGINT>"

    def right(self, schema: Schema, written: RecordFormat) -> str:
        """A pattern for the correct part of a shape, up to the first wrong field.

        If `end` follows, no field is wrong, but a required field is missing. With nested
        attributes, `mistake` says more.
        """
        if is_nested(schema):
            return r"\A"
        return rf"\AOBJECT<{_BODY}: OBJECT<{_fields(schema, written, optional=True)}"

    def is_object(self, shape: Column) -> Column:
        """Whether exactly one JSON object was in the envelope."""
        # A quoted key of the sender could contain anything, so check both the beginning and the
        # end.
        return shape.startswith(f"OBJECT<{_BODY}: OBJECT<") & shape.endswith(self.end)

    def found(self, shape: Column) -> Column:
        """The kind of JSON in the envelope, as the schema names it, or NULL if it was not JSON."""
        return fn.when(shape.isNotNull(), fn.regexp_extract(shape, rf"\AOBJECT<{_BODY}: (\w+)", 1))

    def tuple_of(self, parsed: Column, schema: Schema) -> Column:
        """The attributes as a struct, with timestamps as text. Keep it in a column."""
        fields = ",".join(
            f"{quoted(a.name)}:{spark_type(a.type, time='string')}" for a in schema.attributes
        )
        return parsed.try_cast(f"struct<{_BODY}:struct<{fields}>>")[_BODY]


def texts_of(read: Column, schema: Schema, written: RecordFormat) -> Column:
    """The texts (`secfilter.texts`) of the struct that `Envelope.tuple_of` made."""
    return fn.array(
        fn.lit(""), *(_text(read[a.name], a.type, written.times) for a in schema.attributes)
    )


def _text(value: Column, type_: AttributeType, written: TimeFormat) -> Column:
    match type_:
        case Type.STRING:
            text = fn.concat(fn.lit(QUOTE), value)
        case Type.TIMESTAMP:
            text = fn.when(value.isNotNull(), times.checked_text(value, written))
        case Type.BOOLEAN | Type.BIGINT | Type.DOUBLE:
            text = value.cast("string")
        case _:
            text = held_form(value, type_, written)
    return fn.coalesce(text, fn.lit(""))


def _body(parsed: Column) -> Column:
    """The record, or NULL if it was not JSON."""
    return fn.try_variant_get(parsed, f"$.{_BODY}", "variant")


def _sorted(schema: Schema) -> list[Attribute]:
    return sorted(schema.attributes, key=lambda a: a.name)


def _found(parsed: Column, name: str) -> Column:
    """The field in the VARIANT's schema, or NULL if there is none."""
    value = fn.try_variant_get(parsed, f"$.{_BODY}.{name}", "variant")
    return fn.concat(fn.lit(f"{name}: "), fn.schema_of_variant(value))


def _fields(schema: Schema, written: RecordFormat, *, optional: bool = False) -> str:
    """A pattern for the fields as the VARIANT's schema lists them: sorted, each once.

    With `optional`, all of them may be missing.
    """
    # It is possessive: a field that is present cannot be skipped, so matching is linear.
    return "".join(
        f"(?:{_field(a, written)}(?:, |(?=>))){'' if a.required and not optional else '?+'}"
        for a in _sorted(schema)
    )


def _field(attribute: Attribute, written: RecordFormat) -> str:
    if not isinstance(attribute.type, Type):
        raise TypeError("a nested attribute has no shape")
    shape = shape_of(attribute.type, written.times)
    return f"{re.escape(attribute.name)}: {shape if attribute.required else f'(?:{shape}|VOID)'}"
