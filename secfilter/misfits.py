"""Finds out why a JSON object is no tuple of its stream: which field is wrong, and why.

It uses the shape of the record (`strict_json.Envelope`), and runs only for refused records.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.schema import Type
from secfilter.shapes import other_kind, type_in_words
from secfilter.stream_group import Kind, StreamGroup
from secfilter.strict_json import Envelope

NOT_ONE_OBJECT = "not one JSON object with the schema's fields"
_MARK = "\x1f"
# The name (quoted if it is no identifier), the type, and a decimal's digits and fraction.
_NEXT = (
    rf"(?s)\A(`(?:[^`{_MARK}]|``)*+`|\w++): ([A-Z]++)(?:\((\d++),(\d++)\))?+"
    r"(?:, |>|<).*+"
)
_CUT = 64
_BIGINT = str(Type.BIGINT)


def taken_apart(shape: Column, envelope: Envelope, group: StreamGroup) -> Column:
    """The first wrong field of the shape: name, type, and a decimal's digits.

    Keep the result in a column. It has only one text if no field is wrong.
    """
    right = group.of_kind(lambda kind: envelope.right(kind.schema, kind.written))
    rest = fn.regexp_replace(shape, right, fn.lit(""))
    parts = _MARK.join(f"${n}" for n in range(1, 5))
    return fn.split(fn.regexp_replace(rest, fn.lit(_NEXT), fn.lit(parts)), _MARK, -1)


def reason(text: Column, apart: Column, envelope: Envelope, group: StreamGroup) -> Column:
    """Why the record `text` is refused. `apart` is `taken_apart` of its shape."""
    quoted, kind_of, digits, scale = (fn.get(apart, fn.lit(n)) for n in range(4))
    name = fn.regexp_replace(fn.regexp_replace(quoted, r"\A`|`\z", ""), "``", "`")
    expected = fn.try_element_at(group.of_kind(_types), name)
    wrong = fn.when(expected.isNull(), "unknown field").otherwise(
        other_kind(expected, expected == fn.lit(_BIGINT), kind_of, digits, scale)
    )
    missing = fn.get(fn.array_except(group.of_kind(_required), fn.json_object_keys(text)), 0)
    return (
        fn.when(kind_of.isNotNull(), fn.concat(fn.substring(name, 1, _CUT), fn.lit(": "), wrong))
        .when(quoted == fn.lit(envelope.end), fn.concat(missing, fn.lit(": required, and absent")))
        # The record closed the envelope early and opened it again, or a name contains the mark.
        .otherwise(NOT_ONE_OBJECT)
    )


def _types(kind: Kind) -> Column:
    pairs = (
        fn.lit(text)
        for a in kind.schema.attributes
        for text in (a.name, type_in_words(a.type, kind.written.times))
    )
    return fn.create_map(*pairs)


def _required(kind: Kind) -> Column:
    names = [fn.lit(a.name) for a in kind.schema.attributes if a.required]
    return fn.array(*names).cast("array<string>")
