"""The allow-list of functions, with the types of their arguments and results.

An engine runs no other function over a tuple; `catalog.aggregates` has those over groups. None of
them can fail: if there is no result (overflow, division by zero, an unreadable cast, no element at
a place), the result is NULL. An error would reveal something about tuples that are invisible to the
user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.errors import Position
from catalog.regular_expression import MAX_GROUP, check_group
from catalog.schema import (
    MAX_TYPE_DEPTH,
    ArrayType,
    AttributeType,
    MapType,
    StructType,
    Type,
    depth_of,
    is_comparable,
)

Types = tuple[AttributeType, ...]
NUMERIC = frozenset({Type.BIGINT, Type.DOUBLE})
ORDERED = frozenset({Type.BIGINT, Type.DOUBLE, Type.STRING, Type.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function of the allow-list that computes one value from the values of a tuple.

    `result` gives the result's type for the arguments' types, or None if they do not fit `takes`.

    `growth` limits the length in bytes of a result that is a string or nested. It is at most
    `growth` times as long as all arguments together. With 0 it is never longer than the longest
    argument (or than the text of a number or condition). A result that could be longer than
    MAX_TEXT_BYTES is NULL. The arguments' lengths decide that, before the result is made.

    `copies` is how often the engine's form of a call contains each argument. With nested calls
    these numbers multiply (`catalog.plan_size`). `chained` says that the call turns infinity and
    NaN into infinity or NaN. So a chain of such calls needs one check, at its end. `constant` is
    what the last argument is called if it must be a constant, and `example` is such a constant.
    `check` raises InvalidInput if the function cannot use a constant text.
    """

    name: str
    takes: str
    result: Callable[[Types], AttributeType | None]
    growth: int | None = None
    copies: int = 1
    chained: bool = False
    constant: str = ""
    example: str = ""
    check: Callable[[str, Position | None], None] | None = None


def _fixed(parameters: Types, result: Type) -> Callable[[Types], Type | None]:
    return lambda types: result if types == parameters else None


def _wider(types: Types) -> Type | None:
    if not types or not set(types) <= NUMERIC:
        return None
    return Type.DOUBLE if Type.DOUBLE in types else Type.BIGINT


def _same(types: Types) -> AttributeType | None:
    """The type that all have in common, after numbers are widened."""
    if len(set(types)) == 1:
        return types[0]
    return _wider(types)


def _arithmetic(types: Types) -> Type | None:
    return _wider(types) if len(types) == 2 else None


def _division(types: Types) -> Type | None:
    return Type.DOUBLE if len(types) == 2 and _wider(types) else None


def _equality(types: Types) -> Type | None:
    comparable = len(types) == 2 and all(map(is_comparable, types)) and _same(types)
    return Type.BOOLEAN if comparable else None


def _order(types: Types) -> Type | None:
    comparable = len(types) == 2 and set(types) <= ORDERED and _same(types)
    return Type.BOOLEAN if comparable else None


def _logic(types: Types) -> Type | None:
    return Type.BOOLEAN if len(types) >= 2 and set(types) == {Type.BOOLEAN} else None


def _one_number(types: Types) -> Type | None:
    return _wider(types) if len(types) == 1 else None


def _number_to(result: Type) -> Callable[[Types], Type | None]:
    return lambda types: result if len(types) == 1 and types[0] in NUMERIC else None


def _compared(types: Types) -> AttributeType | None:
    return _same(types) if len(types) > 1 and set(types) <= ORDERED else None


def _any_to(result: Type) -> Callable[[Types], Type | None]:
    return lambda types: result if len(types) == 1 else None


def _case(types: Types) -> AttributeType | None:
    """The arguments are when, then, when, then, ..., else."""
    if len(types) < 3 or len(types) % 2 == 0 or set(types[:-1:2]) != {Type.BOOLEAN}:
        return None
    return _same((*types[1:-1:2], types[-1]))


def _cast(*sources: Type, result: Type) -> Callable[[Types], Type | None]:
    return lambda types: result if len(types) == 1 and types[0] in sources else None


def _element(types: Types) -> AttributeType | None:
    match types:
        case (ArrayType(inner), Type.BIGINT) | (MapType(inner), Type.STRING):
            return inner
        case _:
            return None


def _contains(types: Types) -> Type | None:
    match types:
        case (ArrayType(Type() as inner), value) if _same((inner, value)) is inner:
            return Type.BOOLEAN
        case _:
            return None


def _cardinality(types: Types) -> Type | None:
    return Type.BIGINT if len(types) == 1 and isinstance(types[0], ArrayType | MapType) else None


def _map_keys(types: Types) -> AttributeType | None:
    return ArrayType(Type.STRING) if len(types) == 1 and isinstance(types[0], MapType) else None


def _map_values(types: Types) -> AttributeType | None:
    match types:
        case (MapType(inner),):
            return ArrayType(inner)
        case _:
            return None


def _array(types: Types) -> AttributeType | None:
    inner = _same(types) if types else None
    return ArrayType(inner) if inner is not None and depth_of(inner) < MAX_TYPE_DEPTH else None


def _field(types: Types) -> AttributeType | None:
    """Some type. Which one it is depends on the name (`catalog.expression`)."""
    match types:
        case (StructType(fields), Type.STRING):
            return fields[0].type
        case _:
            return None


def _regular(
    name: str, result: Type, growth: int | None = None, group: int = 0, copies: int = 1
) -> ScalarFunction:
    return ScalarFunction(
        name,
        "a string and a regular expression",
        _fixed((Type.STRING, Type.STRING), result),
        growth=growth,
        copies=copies,
        constant="a regular expression",
        example="'^A[0-9]+$'",
        check=lambda pattern, place: check_group(pattern, group, place),
    )


_S, _N = Type.STRING, Type.BIGINT
ELEMENT, FIELD = "element", "field"
LIKE, REGEXP_LIKE = "like", "regexp_like"
REGEXP_GROUPS = {f"regexp_group_{number}": number for number in range(MAX_GROUP + 1)}
"""The functions that give what a group matched, and the group's number."""
TRUNCATIONS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""The units of `start_of_<unit>`: the beginning of the unit, in UTC. A week begins on Monday."""
# What decimal digits of a double can show.
MAX_DIGITS = 15
# The engine tries a pattern at each character of a text, so a long pattern is slow.
MAX_PATTERN = 255
# A record of the platform's topics has at most 4 MiB. Less the headers, no text is longer.
MAX_TEXT_BYTES = 4 * 1024 * 1024 - 64 * 1024
_FUNCTIONS = (
    *(
        ScalarFunction(name, "two numbers", _arithmetic, copies=2, chained=True)
        for name in ("+", "-", "*")
    ),
    ScalarFunction("%", "two numbers", _arithmetic, copies=2),
    ScalarFunction("/", "two numbers", _division, copies=2),
    ScalarFunction("negate", "one number", _one_number, copies=2, chained=True),
    ScalarFunction("abs", "one number", _one_number, copies=2, chained=True),
    ScalarFunction("floor", "one number", _number_to(Type.BIGINT), copies=3),
    ScalarFunction("ceil", "one number", _number_to(Type.BIGINT), copies=3),
    ScalarFunction("sqrt", "one number", _number_to(Type.DOUBLE), copies=2),
    *(ScalarFunction(name, "two values of one type", _equality) for name in ("=", "<>")),
    *(
        ScalarFunction(name, "two numbers, strings or timestamps", _order)
        for name in ("<", "<=", ">", ">=")
    ),
    *(ScalarFunction(name, "two or more conditions", _logic) for name in ("and", "or")),
    ScalarFunction("not", "one condition", _fixed((Type.BOOLEAN,), Type.BOOLEAN)),
    ScalarFunction("is_null", "one value", _any_to(Type.BOOLEAN)),
    ScalarFunction(
        "coalesce",
        "two or more values of one type",
        lambda t: _same(t) if len(t) > 1 else None,
        growth=0,
    ),
    ScalarFunction("case", "conditions and values of one type, and an ELSE", _case, growth=0),
    # A letter of two bytes may become three letters of two bytes each.
    *(
        ScalarFunction(name, "a string", _fixed((_S,), _S), growth=3, copies=2)
        for name in ("upper", "lower")
    ),
    *(
        ScalarFunction(name, "two or more numbers, strings or timestamps", _compared, growth=0)
        for name in ("greatest", "least")
    ),
    ScalarFunction(
        "round",
        "a number, and how many decimal digits to keep",
        lambda t: _one_number(t[:1]) if t[1:] == (_N,) else None,
        constant="the number of digits of ROUND",
        example="2",
    ),
    *(
        ScalarFunction(name, "a string", _fixed((_S,), _S), growth=0)
        for name in ("trim", "ltrim", "rtrim", "reverse")
    ),
    *(
        ScalarFunction(name, "two strings", _fixed((_S, _S), Type.BOOLEAN))
        for name in ("starts_with", "ends_with")
    ),
    ScalarFunction(
        "position",
        "a string, and the string to look for",
        _fixed((_S, _S), _N),
        constant="the string that POSITION looks for",
        example="'A'",
    ),
    ScalarFunction(
        "micros_between", "two timestamps", _fixed((Type.TIMESTAMP, Type.TIMESTAMP), _N)
    ),
    ScalarFunction("length", "a string", _fixed((_S,), _N)),
    ScalarFunction(
        "concat",
        "two or more strings",
        lambda t: _S if len(t) > 1 and set(t) == {_S} else None,
        growth=1,
        copies=2,
    ),
    ScalarFunction(
        "substring",
        "a string, a start from 1, a length",
        _fixed((_S, _N, _N), _S),
        growth=0,
        copies=4,
    ),
    *(
        ScalarFunction(
            name,
            "a string and a pattern",
            _fixed((_S, _S), Type.BOOLEAN),
            constant=f"a pattern of {name.upper()}",
            example="'A%'; compare two attributes with =",
        )
        for name in (LIKE, "ilike")
    ),
    _regular(REGEXP_LIKE, Type.BOOLEAN),
    *(
        _regular(name, Type.STRING, growth=0, group=group, copies=2)
        for name, group in REGEXP_GROUPS.items()
    ),
    *(
        ScalarFunction(
            f"start_of_{unit}", "a timestamp", _fixed((Type.TIMESTAMP,), Type.TIMESTAMP), copies=2
        )
        for unit in TRUNCATIONS
    ),
    *(
        ScalarFunction(name, "a timestamp", _fixed((Type.TIMESTAMP,), Type.BIGINT))
        for name in ("year", "month", "day", "hour", "minute", "second")
    ),
    ScalarFunction("cast_bigint", "a number or a string", _cast(*NUMERIC, _S, result=_N), copies=3),
    ScalarFunction(
        "cast_double",
        "a number or a string",
        _cast(*NUMERIC, _S, result=Type.DOUBLE),
        copies=4,
    ),
    ScalarFunction(
        "cast_string",
        "a number, condition or string",
        _cast(*NUMERIC, Type.BOOLEAN, _S, result=_S),
        growth=0,
    ),
    ScalarFunction(
        ELEMENT,
        "an array and a place from 1, or a map and a key",
        _element,
        growth=0,
        copies=2,
    ),
    ScalarFunction(
        FIELD,
        "a structure and the name of a field",
        _field,
        growth=0,
        constant="the name of a field",
        example="'price'",
    ),
    ScalarFunction("cardinality", "an array or a map", _cardinality),
    ScalarFunction("contains", "an array of plain values, and such a value", _contains),
    ScalarFunction("map_keys", "a map", _map_keys, growth=0),
    ScalarFunction("map_values", "a map", _map_values, growth=0),
    # A character becomes six at most, such as \u0000. The rest is for quotation marks and commas.
    ScalarFunction(
        "array", "values of one type, not nested too deeply", _array, growth=7, copies=5
    ),
)
SCALAR_FUNCTIONS: dict[str, ScalarFunction] = {f.name: f for f in _FUNCTIONS}
