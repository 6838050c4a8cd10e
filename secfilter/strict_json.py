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

from catalog.schema import Attribute, Schema, Type
from secfilter.columns import SPARK_TYPES, quoted
from secfilter.texts import NO_TIME, QUOTE

# What the VARIANT's schema calls the values that an attribute of the type may have.
_SHAPES: dict[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.BIGINT: "BIGINT",
    Type.DOUBLE: r"(?:BIGINT|DOUBLE|DECIMAL\(\d+,\d+\))",
    Type.STRING: "STRING",
    Type.TIMESTAMP: "STRING",
}
_WIRE_TYPES = {**SPARK_TYPES, Type.TIMESTAMP: "string"}
_ISO_8601 = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)\z"
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

    def fits(self, shape: Column, schema: Schema) -> Column:
        """Whether `shape` (`schema_of_variant` of `parse`) is a tuple of `schema`."""
        return shape.rlike(rf"\AOBJECT<{_BODY}: OBJECT<{_fields(schema)}>, {self.nonce}: BIGINT>\z")

    def is_object(self, shape: Column) -> Column:
        """Whether exactly one JSON object was in the envelope."""
        # Quoted, a key of the sender's could hold anything: so it begins and ends as ours does.
        begin, end = f"OBJECT<{_BODY}: OBJECT<", f">, {self.nonce}: BIGINT>"
        return shape.startswith(begin) & shape.endswith(end)

    def tuple_of(self, parsed: Column, schema: Schema) -> Column:
        """The attributes as a struct; timestamps are still text. Keep it in a column."""
        fields = ",".join(f"{quoted(a.name)}:{_WIRE_TYPES[a.type]}" for a in schema.attributes)
        return parsed.try_cast(f"struct<{_BODY}:struct<{fields}>>")[_BODY]


def texts_of(read: Column, schema: Schema) -> Column:
    """The texts (`secfilter.texts`) of what `Envelope.tuple_of` read."""
    return fn.array(fn.lit(""), *(_text(read[a.name], a.type) for a in schema.attributes))


def _text(value: Column, type_: Type) -> Column:
    match type_:
        case Type.STRING:
            text = fn.concat(fn.lit(QUOTE), value)
        case Type.TIMESTAMP:
            read = fn.when(value.rlike(_ISO_8601), value).otherwise(NO_TIME)
            text = fn.when(value.isNotNull(), read)
        case Type.BOOLEAN | Type.BIGINT | Type.DOUBLE:
            text = value.cast("string")
    return fn.coalesce(text, fn.lit(""))


def _fields(schema: Schema) -> str:
    """A pattern for the fields as the VARIANT's schema lists them: sorted, each once."""
    ordered = sorted(schema.attributes, key=lambda a: a.name)
    # Possessive: a field that is there cannot be skipped to try again, so matching is linear.
    return "".join(f"(?:{_field(a)}(?:, |(?=>))){'' if a.required else '?+'}" for a in ordered)


def _field(attribute: Attribute) -> str:
    shape = _SHAPES[attribute.type]
    return f"{re.escape(attribute.name)}: {shape if attribute.required else f'(?:{shape}|VOID)'}"
