"""Expressions as Spark columns: each function of the allow-list has one rule, which cannot fail.

ANSI mode stays on, so that no number overflows silently. Each rule uses the form that gives NULL.
Doubles are finite or NULL: if the result would be infinite or not a number, it is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, type_of
from catalog.functions import (
    ELEMENT,
    FIELD,
    LIKE,
    MAX_TEXT_BYTES,
    REGEXP_GROUPS,
    REGEXP_LIKE,
    SCALAR_FUNCTIONS,
    TRUNCATIONS,
)
from catalog.schema import ArrayType, AttributeType, Schema, Type, held_as
from secfilter import nested
from secfilter.columns import SPARK_TYPES, attribute
from secfilter.like import ilike, like
from secfilter.regular_expression import regexp_group, regexp_like

# The patterns are possessive: no repetition gives back what it took, so matching is linear.
_NUMBER = r"\A[\x00-\x20]*+[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+[\x00-\x20]*+\z"
Columns = Sequence[Column]
# A rule gets the arguments of a call, their types, and the type of the result.
Types = Sequence[AttributeType]
Rule = Callable[[Columns, Types, AttributeType], Column]

_MIN = -(2**63)


def to_column(expression: Expression, schema: Schema) -> Column:
    """The Spark column that computes `expression` over tuples of `schema`.

    Raises InvalidInput if the expression does not fit the schema or has no rule here.
    """
    column, type_ = _computed(expression, schema), type_of(expression, schema)
    return finite(column) if type_ is Type.DOUBLE and _in_chain(expression) else column


def _computed(expression: Expression, schema: Schema) -> Column:
    """The column; a double at the end of a chain may be infinite or not a number."""
    match expression:
        case AttributeRef(name):
            return attribute(name)
        case Literal():
            return literal(expression)
        case Call(function, (text, Literal(pattern))) if function in MATCHES:
            result = type_of(expression, schema)
            if not isinstance(pattern, str):
                return _null(result)
            return MATCHES[function](to_column(text, schema), pattern)
        case Call(function) if function in (ELEMENT, FIELD):
            return nested.held_value(_spark_value(expression, schema), type_of(expression, schema))
        case Call(function, arguments, position):
            rule = RULES.get(function)
            if rule is None:
                raise InvalidInput(f"function {function!r} cannot be run", position)
            inner = _computed if _in_chain(expression) else to_column
            columns = [inner(argument, schema) for argument in arguments]
            types = [type_of(argument, schema) for argument in arguments]
            made = rule(columns, types, type_of(expression, schema))
            return _bounded(made, columns, SCALAR_FUNCTIONS[function].growth)


def _spark_value(expression: Expression, schema: Schema) -> Column:
    """The value in Spark's own type. A part of a part of a value is found in one reading of it."""
    match expression:
        case Call(function, (whole, Literal(str(name)))) if function == FIELD:
            return _spark_value(whole, schema).getField(name)
        case Call(function, (whole, place)) if function == ELEMENT:
            inner, kind = _spark_value(whole, schema), type_of(whole, schema)
            return nested.element(inner, to_column(place, schema), kind)
        case _:
            return nested.spark_value(to_column(expression, schema), type_of(expression, schema))


def _in_chain(expression: Expression) -> bool:
    return isinstance(expression, Call) and SCALAR_FUNCTIONS[expression.function].chained


def _bounded(made: Column, columns: Columns, growth: int | None) -> Column:
    """The result of a function. It is NULL, and is not computed, if it could be too long."""
    if not growth:
        return made
    # A NULL among several arguments may be a part of the result.
    lengths = [
        fn.coalesce(fn.octet_length(column.cast("string")), fn.lit(0)).cast("bigint")
        for column in columns
    ]
    total = reduce(lambda a, b: a + b, lengths)
    return fn.when(total <= fn.lit(MAX_TEXT_BYTES // growth), made)


def literal(value: Literal) -> Column:
    """A constant of its declared type. Timestamps are microseconds since 1970 UTC."""
    if value.value is None:
        return _null(value.type)
    if value.type is Type.TIMESTAMP:
        return fn.timestamp_micros(fn.lit(value.value).cast("bigint"))
    return fn.lit(value.value).cast(SPARK_TYPES[held_as(value.type)])


def _null(type_: AttributeType) -> Column:
    return fn.lit(None).cast(SPARK_TYPES[held_as(type_)])


def finite(value: Column) -> Column:
    """The double, or NULL if it is infinite or not a number."""
    return fn.when(fn.abs(value) <= fn.lit(1.7976931348623157e308), value)


def _widened(columns: Columns, types: Types, to: AttributeType) -> list[Column]:
    """Convert numbers to the type of the result. Other values stay as they are."""
    return [
        column.cast("double") if to is Type.DOUBLE and type_ is Type.BIGINT else column
        for column, type_ in zip(columns, types, strict=True)
    ]


def _common(types: Types) -> AttributeType:
    return Type.DOUBLE if Type.DOUBLE in types else types[0]


def _arithmetic(operation: Callable[[Column, Column], Column]) -> Rule:
    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        left, right = _widened(columns, types, to)
        return operation(left, right)

    return rule


def _remainder(columns: Columns, types: Types, to: AttributeType) -> Column:
    rest = fn.try_mod(*_widened(columns, types, to))
    return finite(rest) if to is Type.DOUBLE else rest


def _divide(columns: Columns, types: Types, to: AttributeType) -> Column:
    left, right = _widened(columns, types, Type.DOUBLE)
    return finite(fn.try_divide(left, right))


def _negate(columns: Columns, types: Types, to: AttributeType) -> Column:
    if to is Type.DOUBLE:
        return -columns[0]
    return fn.try_subtract(fn.lit(0).cast("bigint"), columns[0])


def _abs(columns: Columns, types: Types, to: AttributeType) -> Column:
    if to is Type.DOUBLE:
        return fn.abs(columns[0])
    # Long.MIN has no absolute value of its type.
    return fn.when(columns[0] > fn.lit(_MIN).cast("bigint"), fn.abs(columns[0]))


def _rounded(operation: Callable[[Column], Column]) -> Rule:
    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        if types[0] is Type.BIGINT:
            return columns[0]
        return _to_bigint(operation(columns[0]), columns[0])

    return rule


def _to_bigint(whole: Column, value: Column) -> Column:
    """A double without a fraction as BIGINT, or NULL outside the range of BIGINT."""
    # 2^63 is a double, but the largest BIGINT is not. So the upper bound is open.
    fits = (value >= fn.lit(-(2.0**63))) & (value < fn.lit(2.0**63))
    return fn.when(fits, whole.try_cast("bigint"))


def _sqrt(columns: Columns, types: Types, to: AttributeType) -> Column:
    value = columns[0].cast("double")
    return fn.when(value >= fn.lit(0.0), fn.sqrt(value))


def _comparison(operation: Callable[[Column, Column], Column]) -> Rule:
    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        left, right = _widened(columns, types, _common(types))
        return operation(left, right)

    return rule


def _folded(operation: Callable[[Column, Column], Column]) -> Rule:
    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        result = columns[0]
        for column in columns[1:]:
            result = operation(result, column)
        return result

    return rule


def _coalesce(columns: Columns, types: Types, to: AttributeType) -> Column:
    return fn.coalesce(*_widened(columns, types, to))


def _case(columns: Columns, types: Types, to: AttributeType) -> Column:
    values = _widened([*columns[1::2], columns[-1]], [*types[1::2], types[-1]], to)
    conditions = columns[:-1:2]
    result = fn.when(conditions[0], values[0])
    for condition, value in zip(conditions[1:], values[1:-1], strict=True):
        result = result.when(condition, value)
    return result.otherwise(values[-1])


def _substring(columns: Columns, types: Types, to: AttributeType) -> Column:
    text, start, length = columns
    # SQL counts from 1. Both numbers are limited to a string's length: the engine takes 32 bits.
    largest = fn.lit(2**31 - 1).cast("bigint")
    one = fn.lit(1).cast("bigint")
    begin = fn.greatest(fn.least(start, largest), one)
    # A start before the text uses up part of the length.
    end = fn.coalesce(fn.try_add(start, length), fn.when(length > fn.lit(0), largest))
    count = fn.least(fn.greatest(fn.try_subtract(end, begin), fn.lit(0).cast("bigint")), largest)
    known = start.isNotNull() & length.isNotNull()
    return fn.when(known, fn.substring(text, begin.try_cast("int"), count.try_cast("int")))


def _round(columns: Columns, types: Types, to: AttributeType) -> Column:
    """Half away from zero. A BIGINT has no decimal digits."""
    if to is Type.BIGINT:
        return columns[0]
    return fn.round(columns[0], columns[1].cast("int"))


def _start_of(unit: str) -> Rule:
    """The beginning of a unit of time. It is NULL before year 1, where it could be no time."""
    first = -62_135_596_800_000_000

    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        known = columns[0] >= fn.timestamp_micros(fn.lit(first))
        return fn.when(known, fn.date_trunc(unit, columns[0]))

    return rule


def _widest_of(operation: Callable[..., Column]) -> Rule:
    return lambda columns, types, to: operation(*_widened(columns, types, to))


def _cast_bigint(columns: Columns, types: Types, to: AttributeType) -> Column:
    if types[0] is Type.DOUBLE:
        return _to_bigint(columns[0], columns[0])
    return _numeric(columns[0], types[0]).try_cast("bigint")


def _cast_double(columns: Columns, types: Types, to: AttributeType) -> Column:
    return finite(_numeric(columns[0], types[0]).try_cast("double"))


def _numeric(column: Column, type_: AttributeType) -> Column:
    """The column, or NULL if it is a text that is not a number.

    This check is needed because Java also accepts numbers such as `1d` and `0x1p3`.
    """
    return fn.when(column.rlike(_NUMBER), column) if type_ is Type.STRING else column


def _nested(operation: Callable[[Column, AttributeType], Column]) -> Rule:
    """A rule over a nested value in Spark's own type."""

    def rule(columns: Columns, types: Types, to: AttributeType) -> Column:
        found = operation(nested.spark_value(columns[0], types[0]), types[0])
        return nested.held_value(found, to)

    return rule


def _contains(columns: Columns, types: Types, to: AttributeType) -> Column:
    return nested.contains(nested.spark_value(columns[0], types[0]), columns[1], types[0])


def _array(columns: Columns, types: Types, to: AttributeType) -> Column:
    if not isinstance(to, ArrayType):
        raise TypeError("an array of another type")
    return nested.array_form(fn.array(*_widened(columns, types, to.element)), to.element)


def _one(operation: Callable[[Column], Column]) -> Rule:
    return lambda columns, types, to: operation(columns[0])


def _all(operation: Callable[..., Column]) -> Rule:
    return lambda columns, types, to: operation(*columns)


def _bigint(operation: Callable[[Column], Column]) -> Rule:
    return _one(lambda column: operation(column).cast("bigint"))


def _group(number: int) -> Callable[[Column, str], Column]:
    return lambda text, pattern: regexp_group(text, pattern, number)


# The rules of the functions whose pattern is not a column.
MATCHES: dict[str, Callable[[Column, str], Column]] = {
    LIKE: like,
    "ilike": ilike,
    REGEXP_LIKE: regexp_like,
    **{name: _group(number) for name, number in REGEXP_GROUPS.items()},
}
# The rules of all other functions.
RULES: dict[str, Rule] = {
    "+": _arithmetic(fn.try_add),
    "-": _arithmetic(fn.try_subtract),
    "*": _arithmetic(fn.try_multiply),
    "%": _remainder,
    "/": _divide,
    "negate": _negate,
    "abs": _abs,
    "floor": _rounded(fn.floor),
    "ceil": _rounded(fn.ceil),
    "sqrt": _sqrt,
    "=": _comparison(lambda left, right: left == right),
    "<>": _comparison(lambda left, right: left != right),
    "<": _comparison(lambda left, right: left < right),
    "<=": _comparison(lambda left, right: left <= right),
    ">": _comparison(lambda left, right: left > right),
    ">=": _comparison(lambda left, right: left >= right),
    "and": _folded(lambda left, right: left & right),
    "or": _folded(lambda left, right: left | right),
    "not": _one(lambda column: ~column),
    "is_null": _one(lambda column: column.isNull()),
    "coalesce": _coalesce,
    "case": _case,
    "upper": _one(fn.upper),
    "lower": _one(fn.lower),
    "greatest": _widest_of(fn.greatest),
    "least": _widest_of(fn.least),
    "round": _round,
    "trim": _one(fn.trim),
    "ltrim": _one(fn.ltrim),
    "rtrim": _one(fn.rtrim),
    "reverse": _one(fn.reverse),
    "starts_with": _all(fn.startswith),
    "ends_with": _all(fn.endswith),
    "position": lambda columns, types, to: fn.position(columns[1], columns[0]).cast("bigint"),
    "length": _bigint(fn.length),
    "micros_between": lambda columns, types, to: fn.try_subtract(*map(fn.unix_micros, columns)),
    "concat": _all(fn.concat),
    "substring": _substring,
    "year": _bigint(fn.year),
    "month": _bigint(fn.month),
    "day": _bigint(fn.dayofmonth),
    "hour": _bigint(fn.hour),
    "minute": _bigint(fn.minute),
    "second": _bigint(fn.second),
    **{f"start_of_{unit}": _start_of(unit) for unit in TRUNCATIONS},
    "cast_bigint": _cast_bigint,
    "cast_double": _cast_double,
    "cast_string": _one(lambda column: column.cast("string")),
    "cardinality": _nested(nested.size),
    "contains": _contains,
    "map_keys": _nested(lambda value, _: fn.map_keys(value)),
    "map_values": _nested(lambda value, _: fn.map_values(value)),
    "array": _array,
}
