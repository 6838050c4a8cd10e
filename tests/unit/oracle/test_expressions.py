"""The oracle's functions, worked by hand: one test id a case."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from catalog.expression import Call, Literal
from catalog.functions import SCALAR_FUNCTIONS
from catalog.schema import Attribute, Schema, Type, parse_type
from tests.oracle.expressions import evaluate
from tests.oracle.scalar import FUNCTIONS, UNITS
from tests.oracle.values import Items, Named, Row, Value, microseconds
from tests.unit.oracle.examples import at, ref, row

_TYPES = {bool: Type.BOOLEAN, int: Type.BIGINT, float: Type.DOUBLE, str: Type.STRING}
MAX, MIN = 2**63 - 1, -(2**63)

CASES: list[tuple[str, tuple[Value | Type, ...], Value]] = [
    ("+", (2, 3), 5),
    ("+", (2, 0.5), 2.5),
    ("+", (MAX, 1), None),
    ("+", (Type.BIGINT, 1), None),
    ("-", (MIN, 1), None),
    ("*", (MAX, 2), None),
    ("*", (1e308, 10.0), None),
    ("%", (7, 3), 1),
    ("%", (-7, 3), -1),
    ("%", (7, -3), 1),
    ("%", (MIN, -1), 0),
    ("%", (-7.5, 2.0), -1.5),
    ("%", (7, 0), None),
    ("%", (7.0, 0.0), None),
    ("/", (7, 2), 3.5),
    ("/", (7, 0), None),
    ("/", (1.0, 0.0), None),
    ("negate", (MIN,), None),
    ("negate", (3,), -3),
    ("abs", (MIN,), None),
    ("abs", (-2.5,), 2.5),
    ("floor", (-2.5,), -3),
    ("floor", (1e300,), None),
    ("ceil", (-2.5,), -2),
    ("ceil", (7,), 7),
    ("round", (2.675, 2), 2.68),
    ("round", (-2.5, 0), -3.0),
    ("round", (7, 0), 7),
    ("greatest", (1, Type.BIGINT, 2.5), 2.5),
    ("greatest", (Type.BIGINT, Type.BIGINT), None),
    ("least", ("b", "a", "c"), "a"),
    ("ltrim", ("  a ",), "a "),
    ("rtrim", ("  a ",), "  a"),
    ("reverse", ("aé😀",), "😀éa"),
    ("starts_with", ("abc", "ab"), True),
    ("starts_with", ("abc", "b"), False),
    ("ends_with", ("abc", "bc"), True),
    ("position", ("aébé", "bé"), 3),
    ("position", ("abc", "x"), 0),
    ("position", ("abc", ""), 1),
    ("regexp_like", ("xaab", "a+b"), True),
    ("regexp_like", ("a\n", "a$"), False),
    ("regexp_like", ("\v\u0663", r"\s|\d"), False),
    ("regexp_like", ("A b", r"(?i)^a[\s]B$"), True),
    ("regexp_group_1", ("id=7", "x"), None),
    ("regexp_group_1", ("id=7", "(x)?id"), ""),
    *(
        (f"regexp_group_{n}", ("abcdefghi", "(a)(b)(c)(d)(e)(f)(g)(h)(i)"), part)
        for n, part in enumerate(("abcdefghi", *"abcdefghi"))
    ),
    ("ilike", ("STRAßE", "str%ße"), True),
    ("ilike", ("a", "b%"), False),
    ("ilike", ("\u212aelvin", "K_LVIN"), True),
    ("sqrt", (9,), 3.0),
    ("sqrt", (-1.0,), None),
    ("=", (1, 1.0), True),
    ("=", (MAX, 9.223372036854775807e18), True),
    ("=", (Type.BIGINT, Type.BIGINT), None),
    ("<>", ("a", "A"), True),
    ("<", ("Z", "a"), True),
    ("<=", (2, 2), True),
    (">", ("b", "a"), True),
    (">=", (1, Type.BIGINT), None),
    ("and", (True, True, Type.BOOLEAN), None),
    ("and", (Type.BOOLEAN, False), False),
    ("or", (Type.BOOLEAN, True), True),
    ("or", (Type.BOOLEAN, False), None),
    ("not", (Type.BOOLEAN,), None),
    ("not", (False,), True),
    ("is_null", (Type.STRING,), True),
    ("is_null", ("",), False),
    ("coalesce", (Type.DOUBLE, 1), 1.0),
    ("case", (False, 1, Type.BOOLEAN, 2, True, 3, 4), 3),
    ("case", (Type.BOOLEAN, 1, 2.5), 2.5),
    ("case", (True, 1, 2.5), 1.0),
    ("upper", ("aé",), "AÉ"),
    ("lower", ("AB",), "ab"),
    ("trim", ("  a b ",), "a b"),
    ("trim", ("\ta",), "\ta"),
    ("length", ("añ😀",), 3),
    ("concat", ("a", "", "b"), "ab"),
    ("concat", ("a", Type.STRING), None),
    ("substring", ("streams", 2, 3), "tre"),
    ("substring", ("abc", 2, 1_000_000_000), "bc"),
    ("substring", ("abc", 4, 1), ""),
    ("like", ("ACME", "A%"), True),
    ("like", ("ACME", "A_"), False),
    ("like", ("a\nb", "a%b"), True),
    ("like", ("a.c", "abc"), False),
    ("cast_bigint", (-2.9,), -2),
    ("cast_bigint", (1e19,), None),
    ("cast_bigint", (" 42 ",), 42),
    ("cast_bigint", ("4x",), None),
    ("cast_bigint", ("9223372036854775808",), None),
    ("cast_double", ("1e3",), 1000.0),
    ("cast_double", ("",), None),
    ("cast_double", ("1e999",), None),
    ("cast_double", (2,), 2.0),
    ("cast_string", (True,), "true"),
    ("cast_string", (-7,), "-7"),
    ("cast_string", (7.0,), "7.0"),
    ("cast_string", (12.25,), "12.25"),
    ("cast_string", (1.5e-4,), "1.5E-4"),
    ("cast_string", (12345678.0,), "1.2345678E7"),
]


def _literal(value: Value | Type) -> Literal:
    if isinstance(value, Type):
        return Literal(None, value)
    assert isinstance(value, bool | int | float | str | None)
    return Literal(value, _TYPES[type(value)])


@pytest.mark.parametrize(("function", "arguments", "expected"), CASES, ids=str)
def test_function(function: str, arguments: tuple[Value | Type, ...], expected: Value) -> None:
    found = evaluate(Call(function, tuple(_literal(a) for a in arguments)), row())
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("second", at(23, 5, 59)),
        ("minute", at(23, 5)),
        ("hour", at(23)),
        ("day", at(0)),
        ("week", at(0) - timedelta(days=5)),
        ("month", at(0) - timedelta(days=30)),
        ("quarter", at(0) - timedelta(days=30)),
        ("year", at(0) - timedelta(days=30)),
    ],
)
def test_start_of_a_unit(unit: str, expected: datetime) -> None:
    time = at(23, 5, 59) + timedelta(microseconds=7)
    assert evaluate(Call(f"start_of_{unit}", (ref("ts"),)), row(ts=time)) == expected


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("year", 2026), ("month", 1), ("day", 31), ("hour", 23), ("minute", 5), ("second", 59)],
)
def test_parts_of_a_time(unit: str, expected: int) -> None:
    assert evaluate(Call(unit, (ref("ts"),)), row(ts=at(23, 5, 59))) == expected


def test_the_difference_of_two_times_is_in_microseconds() -> None:
    between = Call("micros_between", (ref("ts"), Literal(microseconds(at(12)), Type.TIMESTAMP)))
    assert evaluate(between, row(ts=at(12, 0, 1) + timedelta(microseconds=7))) == 1_000_007
    assert evaluate(between, row(ts=at(11))) == -3_600_000_000
    assert evaluate(between, row(ts=None)) is None


def test_a_constant_time_is_microseconds_since_1970() -> None:
    noon = at(12)
    same = Call("=", (ref("ts"), Literal(microseconds(noon), Type.TIMESTAMP)))
    assert evaluate(same, row(ts=noon)) is True


_NESTED = Schema(
    (
        Attribute("a", parse_type("ARRAY<BIGINT>")),
        Attribute("m", parse_type("MAP<STRING, ARRAY<BIGINT>>")),
        Attribute("s", parse_type("STRUCT<f STRING, g BIGINT>")),
    )
)
_VALUES = (Items((1, None, 3)), Named((("k", Items((7,))), ("l", None))), Named((("f", "x"),)))
PARTS: list[tuple[Call, Value]] = [
    (Call("element", (ref("a"), Literal(1, Type.BIGINT))), 1),
    (Call("element", (ref("a"), Literal(-1, Type.BIGINT))), 3),
    (Call("element", (ref("a"), Literal(0, Type.BIGINT))), None),
    (Call("element", (ref("a"), Literal(4, Type.BIGINT))), None),
    (Call("element", (ref("a"), Literal(-4, Type.BIGINT))), None),
    (Call("element", (ref("m"), Literal("k", Type.STRING))), Items((7,))),
    (Call("element", (ref("m"), Literal("x", Type.STRING))), None),
    (Call("field", (ref("s"), Literal("f", Type.STRING))), "x"),
    (Call("field", (ref("s"), Literal("g", Type.STRING))), None),
    (Call("cardinality", (ref("a"),)), 3),
    (Call("cardinality", (ref("m"),)), 2),
    (Call("contains", (ref("a"), Literal(3, Type.BIGINT))), True),
    (Call("contains", (ref("a"), Literal(4, Type.BIGINT))), None),
    (Call("map_keys", (ref("m"),)), Items(("k", "l"))),
    (Call("map_values", (ref("m"),)), Items((Items((7,)), None))),
    (Call("array", (Literal("a", Type.STRING), Literal(None, Type.STRING))), Items(("a", None))),
]


@pytest.mark.parametrize(("call", "expected"), PARTS)
def test_parts_of_nested_values(call: Call, expected: Value) -> None:
    assert evaluate(call, Row(_NESTED, _VALUES)) == expected
    nothing = evaluate(call, Row(_NESTED, (None, None, None)))
    assert nothing == (expected if call.function == "array" else None)


def test_the_oracle_knows_exactly_the_allow_list() -> None:
    assert set(FUNCTIONS) == set(SCALAR_FUNCTIONS)


def test_an_example_for_every_function() -> None:
    times = {"year", "month", "day", "hour", "minute", "second"}
    starts = {f"start_of_{unit}" for unit in UNITS}
    times.add("micros_between")
    nested = {call.function for call, _ in PARTS}
    assert {name for name, _, _ in CASES} | times | starts | nested == set(SCALAR_FUNCTIONS)
