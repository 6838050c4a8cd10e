"""Reads nested values of records strictly, and finds out why one is wrong, with its path.

A stream with a nested attribute reads its records with these rules alone: the record is a structure
whose fields are the attributes. `secfilter.strict_json` has the rules of all other streams, which
need no path and are faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.schema import (
    ArrayType,
    Attribute,
    AttributeType,
    MapType,
    Schema,
    StructType,
    Type,
    walk_type,
)
from secfilter import times
from secfilter.expressions import finite
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.nested import held_value
from secfilter.shapes import other_kind, shape_of, type_in_words

_SHOWN = 64
_DECIMAL = r"\ADECIMAL\((\d+),(\d+)\)\z"
_SEPARATED = "holds the character U+001E or U+001F"


def is_nested(schema: Schema) -> bool:
    """Whether the schema has a nested attribute."""
    return any(not isinstance(each.type, Type) for each in schema.attributes)


def held_form(value: Column, type_: AttributeType, written: TimeFormat) -> Column:
    """The held form of a value that `mistake` finds right. Its times are texts so far."""
    return held_value(_with_times(value, type_, written), type_)


def _with_times(value: Column, type_: AttributeType, written: TimeFormat) -> Column:
    """The value with its times read."""
    if Type.TIMESTAMP not in set(walk_type(type_)):
        return value
    match type_:
        case ArrayType(inner):
            return fn.transform(value, lambda each: _with_times(each, inner, written))
        case MapType(inner):
            return fn.transform_values(value, lambda _, each: _with_times(each, inner, written))
        case StructType(fields):
            parts = [
                _with_times(value.getField(each.name), each.type, written).alias(each.name)
                for each in fields
            ]
            return fn.when(value.isNotNull(), fn.struct(*parts))
        case _:
            return times.read(times.checked_text(value, written), written)


def mistake(record: Column, schema: Schema, written: RecordFormat) -> Column:
    """Why the VARIANT of a record is no tuple of the schema, or NULL if it is one.

    The mistake is that of the field whose name comes first.
    """
    return _Rules(written).of_fields(record, schema.attributes, fn.lit(""))


@dataclass(frozen=True, slots=True)
class _Rules:
    written: RecordFormat

    def of_fields(self, whole: Column, fields: Sequence[Attribute], path: Column) -> Column:
        """The first mistake in the fields of an object."""

        def of(name: str, wrong: Column) -> Column:
            return fn.struct(fn.lit(name).alias("name"), wrong.alias("wrong"))

        found = [of(each.name, self._of_field(whole, each, path)) for each in fields]
        if self.written.unknown_fields is UnknownFields.QUARANTINE:
            names = fn.array(*(fn.lit(each.name) for each in fields))
            keys = fn.map_keys(fn.try_variant_get(whole, "$", "map<string,variant>"))
            unknown = _let(
                fn.get(fn.array_except(keys, names), 0),
                lambda name: fn.struct(
                    name.alias("name"),
                    fn.concat(path, fn.substring(name, 1, _SHOWN), fn.lit(": unknown field")).alias(
                        "wrong"
                    ),
                ),
            )
            found.append(unknown)
        wrong = fn.filter(fn.array(*found), lambda each: each["wrong"].isNotNull())
        return fn.array_min(wrong)["wrong"]

    def _of_field(self, whole: Column, field: Attribute, path: Column) -> Column:
        own = fn.concat(path, fn.lit(field.name))

        def of(value: Column) -> Column:
            absent = _says(own, fn.lit("required, and absent"))
            null = _says(own, fn.lit(f"expected {self._in_words(field.type)}, found null"))
            nothing = fn.when(value.isNull(), absent).otherwise(null)
            return fn.when(
                _is_nothing(value), nothing if field.required else fn.lit(None).cast("string")
            ).otherwise(self._of_value(value, field.type, own))

        return _let(fn.try_variant_get(whole, f"$.{field.name}", "variant"), of)

    def _of_value(self, value: Column, type_: AttributeType, path: Column) -> Column:
        """The first mistake in a value that is not NULL."""
        match type_:
            case ArrayType(inner):
                return self._of_array(value, inner, path)
            case MapType(inner):
                return self._of_map(value, inner, path)
            case StructType(fields):
                several = [Attribute(each.name, each.type) for each in fields]
                whole = fn.try_variant_get(value, "$", "map<string,variant>")
                inside = self.of_fields(value, several, fn.concat(path, fn.lit(".")))
                return fn.when(whole.isNull(), self._other(value, type_, path)).otherwise(inside)
            case _:
                return self._of_plain(value, type_, path)

    def _of_array(self, value: Column, inner: AttributeType, path: Column) -> Column:
        def of(elements: Column) -> Column:
            wrong = fn.transform(
                elements,
                lambda each, at: self._inside(each, inner, _at(path, at + fn.lit(1))),
            )
            return fn.when(elements.isNull(), self._other(value, ArrayType(inner), path)).otherwise(
                _first(wrong)
            )

        return _let(fn.try_variant_get(value, "$", "array<variant>"), of)

    def _of_map(self, value: Column, inner: AttributeType, path: Column) -> Column:
        def of_pair(pair: Column) -> Column:
            key = pair["key"]
            shown = fn.concat(fn.lit("'"), fn.substring(key, 1, _SHOWN), fn.lit("'"))
            own = _at(path, shown)
            return fn.when(
                _is_separated(key), _says(path, fn.lit(f"a key {_SEPARATED}"))
            ).otherwise(self._inside(pair["value"], inner, own))

        def of(pairs: Column) -> Column:
            return fn.when(pairs.isNull(), self._other(value, MapType(inner), path)).otherwise(
                _first(fn.transform(pairs, of_pair))
            )

        pairs = fn.map_entries(fn.try_variant_get(value, "$", "map<string,variant>"))
        return _let(pairs, of)

    def _inside(self, value: Column, type_: AttributeType, path: Column) -> Column:
        """The first mistake in an element, which may be NULL."""
        return fn.when(~_is_nothing(value), self._of_value(value, type_, path))

    def _of_plain(self, value: Column, type_: Type, path: Column) -> Column:
        fits = fn.schema_of_variant(value).rlike(rf"\A{shape_of(type_, self.written.times)}\z")
        text = fn.try_variant_get(value, "$", "string")
        right = fn.lit(None).cast("string")
        match type_:
            case Type.DOUBLE:
                number = finite(fn.try_variant_get(value, "$", "double"))
                right = fn.when(number.isNull(), _says(path, fn.lit("out of range of a double")))
            case Type.STRING:
                right = fn.when(_is_separated(text), _says(path, fn.lit(_SEPARATED)))
            case Type.TIMESTAMP:
                right = _let(
                    times.checked_text(text, self.written.times),
                    lambda checked: fn.when(
                        times.is_faulty(checked, times.read(checked, self.written.times)),
                        _says(path, times.fault(checked)),
                    ),
                )
        return fn.when(fits, right).otherwise(self._other(value, type_, path))

    def _other(self, value: Column, type_: AttributeType, path: Column) -> Column:
        """The mistake of a value that is of another kind."""
        shape = fn.schema_of_variant(value)
        kind, digits, scale = (
            fn.regexp_extract(shape, pattern, group)
            for pattern, group in ((r"\A([A-Z]+)", 1), (_DECIMAL, 1), (_DECIMAL, 2))
        )
        expected = fn.lit(self._in_words(type_))
        is_bigint = fn.lit(type_ is Type.BIGINT)
        return _says(path, other_kind(expected, is_bigint, kind, digits, scale))

    def _in_words(self, type_: AttributeType) -> str:
        match type_:
            case ArrayType():
                return "array"
            case MapType() | StructType():
                return "object"
            case _:
                return type_in_words(type_, self.written.times)


def _says(path: Column, wrong: Column) -> Column:
    return fn.concat(path, fn.lit(": "), wrong)


def _at(path: Column, place: Column) -> Column:
    return fn.concat(path, fn.lit("["), place.cast("string"), fn.lit("]"))


def _first(wrong: Column) -> Column:
    return fn.get(fn.filter(wrong, lambda each: each.isNotNull()), 0)


def _is_nothing(value: Column) -> Column:
    return value.isNull() | fn.is_variant_null(value)


def _is_separated(text: Column) -> Column:
    return fn.contains(text, fn.lit(NULL_MARK)) | fn.contains(text, fn.lit(SEPARATOR))


def _let(value: Column, result: Callable[[Column], Column]) -> Column:
    """Apply `result` to a value that is computed only once."""
    return fn.get(fn.transform(fn.array(value), result), 0)
