"""The names of functions in SQL, and what each name means in functions of the allow-list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches

from catalog.errors import InvalidInput, Position
from catalog.expression import Literal
from catalog.functions import REGEXP_GROUPS, REGEXP_LIKE, TRUNCATIONS
from catalog.regular_expression import MAX_GROUP
from catalog.schema import Type
from secadmin.languages.expressions.absent import reason
from secadmin.languages.expressions.nested_values import element_of
from secadmin.languages.typed import Typed, call, literal, null

EXTRACTED = frozenset({"year", "month", "day", "hour", "minute", "second"})
# SUBSTRING(s, start) goes to the end of the string. No string here is longer than this.
_TO_THE_END = 1_000_000_000
Arguments = Sequence[Typed]
Meaning = Callable[[Arguments, Position], Typed]


def _plain(function: str) -> Meaning:
    """The function of the allow-list with the arguments as they are written."""
    return lambda given, place: call(function, given, place)


def _of(number: int, form: str, build: Meaning) -> Meaning:
    """A function with so many arguments. `form` is how it is written."""

    def checked(given: Arguments, place: Position) -> Typed:
        if len(given) != number:
            raise InvalidInput(f"write {form}", place)
        return build(given, place)

    return checked


def _number(value: int, place: Position) -> Typed:
    return literal(value, Type.BIGINT, place)


def _substring(given: Arguments, place: Position) -> Typed:
    ended = [*given, _number(_TO_THE_END, place)] if len(given) == 2 else given
    return call("substring", ended, place)


def _round(given: Arguments, place: Position) -> Typed:
    return call("round", [*given, _number(0, place)] if len(given) == 1 else given, place)


def _nullif(given: Arguments, place: Position) -> Typed:
    return call("case", [call("=", given, place), null(place), given[0]], place)


def _if(given: Arguments, place: Position) -> Typed:
    if len(given) not in (2, 3):
        raise InvalidInput("write IF(condition, value, other value)", place)
    return call("case", [*given[:2], given[2] if len(given) == 3 else null(place)], place)


def _left(given: Arguments, place: Position) -> Typed:
    return call("substring", [given[0], _number(1, place), given[1]], place)


def _right(given: Arguments, place: Position) -> Typed:
    length = call("length", [given[0]], place)
    before = call("-", [length, given[1]], place)
    start = call("+", [before, _number(1, place)], place)
    return call("substring", [given[0], start, given[1]], place)


def _unit(given: Typed, units: Sequence[str], place: Position) -> str:
    """The unit of time that a constant names."""
    value = given.expression.value if isinstance(given.expression, Literal) else None
    unit = value.lower() if isinstance(value, str) else ""
    if unit not in units:
        known = ", ".join(f"'{each}'" for each in units)
        raise InvalidInput(f"the unit of time is one of {known}", given.position or place)
    return unit


def _date_trunc(given: Arguments, place: Position) -> Typed:
    return call(f"start_of_{_unit(given[0], TRUNCATIONS, place)}", given[1:], place)


def _date_part(given: Arguments, place: Position) -> Typed:
    return call(_unit(given[0], sorted(EXTRACTED), place), given[1:], place)


def _swapped(given: Arguments, place: Position) -> Typed:
    """The position of the first string in the second one."""
    return call("position", [given[1], given[0]], place)


def _regexp_extract(given: Arguments, place: Position) -> Typed:
    """REGEXP_EXTRACT(string, pattern, group). Systems differ in the group that they take unsaid."""
    value = given[2].expression.value if isinstance(given[2].expression, Literal) else None
    name = f"regexp_group_{value}"
    if name not in REGEXP_GROUPS:
        raise InvalidInput(
            f"the number of the group is a constant from 0 (the whole match) to {MAX_GROUP}",
            given[2].position or place,
        )
    return call(name, given[:2], place)


def _element_at(given: Arguments, place: Position) -> Typed:
    return element_of(given[0], given[1], place)


def _array(given: Arguments, place: Position) -> Typed:
    if not given:
        raise InvalidInput("an array has at least one value: write ARRAY[1, 2]", place)
    return call("array", given, place)


_CARDINALITY = _of(1, "CARDINALITY(array or map)", _plain("cardinality"))
_POSITION = _plain("position")
SCALAR: dict[str, Meaning] = {
    **{
        name: _plain(name)
        for name in (
            *("abs", "floor", "ceil", "sqrt", "coalesce", "greatest", "least"),
            *("upper", "lower", "trim", "ltrim", "rtrim", "reverse", "length", "concat"),
            *("starts_with", "ends_with"),
            *EXTRACTED,
        )
    },
    "ceiling": _plain("ceil"),
    "char_length": _plain("length"),
    "character_length": _plain("length"),
    "len": _plain("length"),
    "ucase": _plain("upper"),
    "lcase": _plain("lower"),
    "btrim": _plain("trim"),
    "startswith": _plain("starts_with"),
    "endswith": _plain("ends_with"),
    "mod": _plain("%"),
    "ifnull": _of(2, "IFNULL(value, value for NULL)", _plain("coalesce")),
    "nvl": _of(2, "NVL(value, value for NULL)", _plain("coalesce")),
    "nullif": _of(2, "NULLIF(value, value that gives NULL)", _nullif),
    "if": _if,
    "round": _round,
    "substring": _substring,
    "substr": _substring,
    "left": _of(2, "LEFT(string, length)", _left),
    "right": _of(2, "RIGHT(string, length)", _right),
    "position": _of(2, "POSITION('a' IN string)", _swapped),
    "locate": _of(2, "LOCATE('a', string)", _swapped),
    "strpos": _of(2, "STRPOS(string, 'a')", _POSITION),
    "instr": _of(2, "INSTR(string, 'a')", _POSITION),
    "date_trunc": _of(2, "DATE_TRUNC('hour', ts)", _date_trunc),
    "regexp_like": _plain(REGEXP_LIKE),
    "regexp_extract": _of(3, "REGEXP_EXTRACT(string, 'a(.*)', 1)", _regexp_extract),
    "element_at": _of(2, "ELEMENT_AT(array, 1) or ELEMENT_AT(map, 'key')", _element_at),
    "cardinality": _CARDINALITY,
    "size": _CARDINALITY,
    "array_size": _CARDINALITY,
    "array_length": _CARDINALITY,
    "array_contains": _of(2, "ARRAY_CONTAINS(array, value)", _plain("contains")),
    "map_keys": _of(1, "MAP_KEYS(map)", _plain("map_keys")),
    "map_values": _of(1, "MAP_VALUES(map)", _plain("map_values")),
    "array": _array,
    "date_part": _of(2, "DATE_PART('hour', ts)", _date_part),
}


# Names with a meaning at other places of a query: somebody may have mistyped one of them.
_ELSEWHERE = (
    *("count", "sum", "avg", "stddev", "min", "max", "first", "last", "prev", "next"),
    *("tumble", "hop", "session", "row_number", "lag", "lead", "unnest"),
)


def is_known(name: str) -> bool:
    """Say whether SQL has a function of this name, in small letters."""
    return name in SCALAR


def scalar_call(name: str, arguments: Arguments, position: Position) -> Typed:
    """A call by its SQL name. Raises InvalidInput for a function that is not in the allow-list."""
    meaning = SCALAR.get(name)
    if meaning is None:
        others = [each for each in (*SCALAR, *_ELSEWHERE) if each != name]
        near = get_close_matches(name[:40], others, n=1)
        hint = f" (did you mean {near[0].upper()}?)" if near else ""
        known = ", ".join(sorted(SCALAR)).upper()
        raise InvalidInput(
            reason(name) or f"unknown function {name[:40].upper()}{hint}; there are: {known}",
            position,
        )
    return meaning(arguments, position)
