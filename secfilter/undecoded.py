"""Why a value is refused before its JSON is read: it is absent, too large or not UTF-8."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

# A record of a schema registry begins with five bytes: 0 and the number of its schema.
_REGISTRY = b"\0"
_REGISTRY_BYTES = 5
_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\0", b"\0{", b"[\0", b"\0[")


def reason(value: Column, text: Column, max_bytes: Column, strict: Column) -> Column:
    """The reason, or NULL if the value may be JSON. `text` is the decoded value."""
    size = fn.octet_length(value)
    utf_16 = [fn.startswith(value, fn.lit(mark)) for mark in _UTF_16]
    registry = fn.startswith(value, fn.lit(_REGISTRY)) & (size > fn.lit(_REGISTRY_BYTES))
    sizes = (fn.lit("larger than the stream allows: "), size, fn.lit(" bytes, at most "), max_bytes)
    return (
        fn.when(value.isNull(), "there is no value")
        .when(size > max_bytes, fn.concat(*(part.cast("string") for part in sizes)))
        .when(strict & _any_of(utf_16), "looks like UTF-16; write JSON in UTF-8")
        .when(strict & registry, "looks like Avro of a schema registry; write JSON")
        .when(strict & ~fn.is_valid_utf8(text), "not UTF-8")
    )


def _any_of(conditions: list[Column]) -> Column:
    result = fn.lit(False)
    for condition in conditions:
        result = result | condition
    return result
