"""Expressions are total, and mean what plain arithmetic says; extreme values first."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, type_of
from catalog.functions import ELEMENT, FIELD, MAX_DIGITS, SCALAR_FUNCTIONS
from catalog.schema import Attribute, AttributeType, Schema, Type, held_as, parse_type
from secfilter.columns import SPARK_TYPES
from secfilter.expressions import MATCHES, RULES, to_column
from tests.differential.make_expression import REGULAR
from tests.lanes import number_of

N, D, S, B, T = Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.TIMESTAMP
A, M, F = map(parse_type, ("ARRAY<BIGINT>", "MAP<STRING, DOUBLE>", "STRUCT<f STRING>"))
KINDS: list[AttributeType] = [*SPARK_TYPES, A, M, F]
LOW, HIGH = -(2**63), 2**63 - 1
SCHEMA = Schema(tuple(Attribute(f"{t}.{n}", t) for t in KINDS for n in ("a", "b", "c")))
LARGEST = 1.7976931348623157e308
EXTREMES: dict[AttributeType, list[Any]] = {
    N: [None, LOW, LOW + 1, -(2**31) - 1, -1, 0, 1, 2, 2**31, 2**53 + 1, HIGH - 1, HIGH],
    D: [None, -LARGEST, -(2.0**63), -1.5, -0.0, 0.0, 5e-324, 1.0, 2.0**63, 1e300, LARGEST],
    S: [
        None,
        "",
        " ",
        "a",
        "A%",
        "_",
        "\\",
        "a\\",
        "%\\%",
        "[",
        "é",
        "😀x",
        " 12 ",
        "1e999",
        "NaN",
    ],
    B: [None, True, False],
    T: [None, LOW, -1, 0, 1_769_860_800_123_456, HIGH],
    # The last one of each is no held form. Nobody writes such a text, and it is NULL.
    A: [None, "[]", "[null]", f"[{LOW},0,null,{HIGH}]", "[1.5,{}]", "x"],
    M: [None, "{}", '{"":1.0}', '{"a":null,"é😀":1.7976931348623157E308}', "[]", "{"],
    F: [None, "{}", '{"f":""}', '{"f":"\\u0000\\"é"}', '{"g":1}', "null"],
}
_NAMES = sorted(SCALAR_FUNCTIONS)
_PATTERN_STEP = number_of("EXPRESSION_PATTERN_STEP", sample=5, long=1)
SIGNATURES: list[tuple[str, tuple[AttributeType, ...]]] = [
    (name, types)
    for name in SCALAR_FUNCTIONS
    for count in (1, 2, 3)
    for types in (
        [(a,) for a in KINDS]
        if count == 1
        else [(a, b) for a in KINDS for b in KINDS]
        if count == 2
        else [(S, N, N), (B, N, D), (B, S, S), (B, T, T), (B, B, B), (B, F, F)]
    )
    if SCALAR_FUNCTIONS[name].result(types) is not None
]


def test_every_allowed_function_has_a_rule_and_no_other() -> None:
    assert {*RULES, *MATCHES, ELEMENT, FIELD} == set(SCALAR_FUNCTIONS)
    assert {name for name, _ in SIGNATURES} == set(SCALAR_FUNCTIONS)


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be run"):
        to_column(Call("reflect", ()), SCHEMA)


Evaluate = Callable[[list[Expression], list[dict[str, Any]]], list[list[Any]]]


@pytest.fixture(scope="module")
def evaluate(spark: SparkSession) -> Evaluate:
    """Values of expressions over tuples, computed by Spark; timestamps as microseconds."""
    raw = ", ".join(
        f"`{a.name}` {'bigint' if a.type is T else SPARK_TYPES[held_as(a.type)]}"
        for a in SCHEMA.attributes
    )

    def run(expressions: list[Expression], rows: list[dict[str, Any]]) -> list[list[Any]]:
        data = [tuple(row.get(a.name) for a in SCHEMA.attributes) for row in rows]
        frame = spark.createDataFrame(data, raw).coalesce(1)
        typed = frame.selectExpr(
            *(
                f"timestamp_micros(`{a.name}`) AS `{a.name}`" if a.type is T else f"`{a.name}`"
                for a in SCHEMA.attributes
            )
        )
        columns = []
        for n, expression in enumerate(expressions):
            column = to_column(expression, SCHEMA)
            text = column.cast("string") if type_of(expression, SCHEMA) is T else column
            columns.append(text.alias(f"r{n}"))
        return [list(row) for row in typed.select(*columns).collect()]

    return run


def refs(types: tuple[AttributeType, ...]) -> tuple[AttributeRef, ...]:
    return tuple(AttributeRef(f"{t}.{n}") for t, n in zip(types, "abc", strict=False))


def calls(name: str, types: tuple[AttributeType, ...]) -> list[Expression]:
    """Of attributes; some functions take a constant last."""
    if name == FIELD:
        return [Call(name, (*refs(types[:1]), Literal("f", S)))]
    if SCALAR_FUNCTIONS[name].constant:
        texts = EXTREMES[S] if SCALAR_FUNCTIONS[name].check is None else patterns(name)
        pool = range(MAX_DIGITS + 1) if types[-1] is N else texts
        constants = [Literal(value, types[-1]) for value in pool]
        return [Call(name, (*refs(types[:1]), each)) for each in constants]
    return [Call(name, refs(types))]


def patterns(name: str) -> list[str | None]:
    """Regular expressions for a function. In the sample lane its neighbours have the others."""
    return [None, *REGULAR[_NAMES.index(name) % _PATTERN_STEP :: _PATTERN_STEP]]


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_a_call_holds_its_arguments_as_often_as_it_says(spark: SparkSession, name: str) -> None:
    """The catalog has the number, because it has no Spark to count with."""
    held = [
        str(to_column(call, SCHEMA)).count(f"{kind}.{place}")
        for of, types in SIGNATURES
        if of == name
        for call in calls(name, types)
        for kind, place in zip(types, "abc", strict=False)
    ]
    # Spark writes NULLIF out later, and its first argument is there twice.
    hidden = 1 if name == ELEMENT else 0
    assert max(held) + hidden == SCALAR_FUNCTIONS[name].copies


def test_a_chain_of_doubles_stays_as_long_as_it_is_written(spark: SparkSession) -> None:
    chain: Expression = AttributeRef("double.a")
    for _ in range(40):
        chain = Call("+", (chain, AttributeRef("double.b")))
    assert str(to_column(chain, SCHEMA)).count("double.b") == 80


# A job of Spark takes a second, so functions share one.
_TOGETHER = 8


@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda n: _NAMES[n])
def test_no_value_raises(evaluate: Evaluate, first: int) -> None:
    """Every signature of the functions over all pairs of extreme values, in generated code."""
    names = _NAMES[first : first + _TOGETHER]
    expressions = [e for name, types in SIGNATURES if name in names for e in calls(name, types)]
    rows = [
        {
            f"{t}.{n}": EXTREMES[t][(i if n == "a" else j) % len(EXTREMES[t])]
            for t in KINDS
            for n in "abc"
        }
        for i in range(15)
        for j in range(15)
    ]
    results = evaluate(expressions, rows)
    assert len(results) == len(rows)
    for row in results:
        for value in row:
            assert not isinstance(value, float) or math.isfinite(value)


integers = st.one_of(
    st.sampled_from([v for v in EXTREMES[N] if v is not None]), st.integers(LOW, HIGH)
)
doubles = st.one_of(
    st.sampled_from([v for v in EXTREMES[D] if v is not None]),
    st.floats(allow_nan=False, allow_infinity=False),
)


def whole(value: int) -> int | None:
    return value if LOW <= value <= HIGH else None


def finite(compute: Callable[[], float]) -> float | None:
    try:
        value = compute()
    except (OverflowError, ZeroDivisionError, ValueError):
        return None
    return value if math.isfinite(value) else None


def plain_integers(a: int, b: int) -> dict[str, Any]:
    return {
        "+": whole(a + b),
        "-": whole(a - b),
        "*": whole(a * b),
        "/": finite(lambda: float(a) / float(b)),
        "%": None
        if b == 0
        else int(math.copysign(abs(a) % abs(b), a))
        if abs(a) < 2**53
        else (abs(a) % abs(b)) * (1 if a > 0 else -1),
        "<": a < b,
        ">=": a >= b,
        "=": a == b,
        "<>": a != b,
    }


def plain_doubles(a: float, b: float) -> dict[str, Any]:
    return {
        "+": finite(lambda: a + b),
        "-": finite(lambda: a - b),
        "*": finite(lambda: a * b),
        "/": finite(lambda: a / b),
        "%": finite(lambda: math.fmod(a, b)),
        "<": a < b,
        "<=": a <= b,
        "=": a == b,
    }


def plain_one_integer(a: int) -> dict[str, Any]:
    return {
        "negate": whole(-a),
        "abs": whole(abs(a)),
        "floor": a,
        "ceil": a,
        "sqrt": math.sqrt(a) if a >= 0 else None,
        "cast_double": float(a),
        "cast_string": str(a),
        "is_null": False,
    }


def plain_one_double(a: float) -> dict[str, Any]:
    return {
        "negate": -a,
        "abs": abs(a),
        "floor": whole(math.floor(a)),
        "ceil": whole(math.ceil(a)),
        "sqrt": math.sqrt(a) if a >= 0 else None,
        "cast_bigint": whole(math.trunc(a)),
    }


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(st.tuples(integers, integers, doubles, doubles), min_size=150, max_size=200))
def test_numbers_agree_with_plain_arithmetic(
    evaluate: Evaluate, pairs: list[tuple[int, int, float, float]]
) -> None:
    rows = [{"bigint.a": a, "bigint.b": b, "double.a": c, "double.b": d} for a, b, c, d in pairs]
    cases: list[tuple[tuple[Type, ...], dict[str, Any]]] = [
        ((N, N), plain_integers(0, 1)),
        ((D, D), plain_doubles(0, 1)),
    ]
    cases += [((N,), plain_one_integer(0)), ((D,), plain_one_double(0))]
    expressions: list[Expression] = [
        Call(name, refs(types)) for types, table in cases for name in table
    ]
    for (a, b, c, d), got in zip(pairs, evaluate(expressions, rows), strict=True):
        tables = [plain_integers(a, b), plain_doubles(c, d)]
        tables += [plain_one_integer(a), plain_one_double(c)]
        expected = [value for table in tables for value in table.values()]
        assert got == expected, (a, b, c, d)


def text(value: str) -> Literal:
    return Literal(value, S)


def double(value: float) -> Literal:
    return Literal(value, D)


def number(value: int) -> Literal:
    return Literal(value, N)


MEANINGS: list[tuple[Expression, Any]] = [
    (Call("substring", (text("abcdef"), number(2), number(3))), "bcd"),
    (Call("substring", (text("abcdef"), number(-1), number(3))), "a"),
    (Call("substring", (text("abcdef"), number(0), number(1))), ""),
    (Call("substring", (text("abcdef"), number(2), number(-3))), ""),
    (Call("substring", (text("abcdef"), number(2), number(HIGH))), "bcdef"),
    (Call("substring", (text("a😀c"), number(2), number(1))), "😀"),
    (Call("like", (text("a\\b"), text("a\\_"))), True),
    (Call("like", (text("axb"), text("a%\\"))), False),
    (Call("like", (text("a\nb"), text("a%b"))), True),
    (Call("like", (text("a.b"), text("a_b"))), True),
    (Call("ilike", (text("Straße Kelvin \u212a"), text("sTRA_E k% k"))), True),
    (Call("ilike", (text("ΟΔΟΣ"), text("οδος"))), True),
    (Call("ilike", (text("a.b"), text("A_C"))), False),
    (Call("regexp_like", (text("x\nabb"), text("ab+$"))), True),
    (Call("regexp_like", (text("ab\n"), text("b$"))), False),
    (Call("regexp_like", (text("\u0663"), text(r"\d"))), False),
    (
        Call("regexp_group_2", (text("?id=é😀&"), text("(&|^|\\?)id=([^&]*)"))),
        "é😀",
    ),
    (Call("regexp_group_0", (text("aXbxb"), text("(?i)x.*?b"))), "Xb"),
    (Call("regexp_group_1", (text("ab"), text("(x)?b"))), ""),
    (Call("regexp_group_1", (text("ab"), text("(x)b"))), None),
    (Call("regexp_group_1", (text("$1"), text(r"(\$\d)"))), "$1"),
    (Call("round", (double(2.675), number(2))), 2.68),
    (Call("round", (double(-0.5), number(0))), -1.0),
    (Call("round", (double(0.4), number(0))), 0.0),
    (Call("greatest", (Literal(None, N), number(3), double(2.5))), 3.0),
    (Call("least", (text("b"), text("a"))), "a"),
    (Call("position", (text("a😀b"), text("b"))), 3),
    (Call("position", (text("ab"), text(""))), 1),
    (Call("reverse", (text("a😀b"),)), "b😀a"),
    (Call("cast_string", (Call("hour", (Call("start_of_day", (Literal(-1, T),)),)),)), "0"),
    (Call("day", (Call("start_of_week", (Literal(0, T),)),)), 29),
    (Call("month", (Call("start_of_quarter", (Literal(-1, T),)),)), 10),
    (Call("cast_bigint", (text("1.5"),)), None),
    (Call("cast_bigint", (text("9223372036854775808"),)), None),
    (Call("cast_double", (text("Infinity"),)), None),
    (Call("cast_string", (Literal(True, B),)), "true"),
    (Call("cast_string", (Literal(1e10, D),)), "1.0E10"),
    (Call("and", (Literal(None, B), Literal(False, B))), False),
    (Call("or", (Literal(None, B), Literal(False, B))), None),
    (Call("coalesce", (Literal(None, N), Literal(1.5, D))), 1.5),
    (
        Call("case", (Literal(None, B), number(1), Literal(True, B), number(2), Literal(0.5, D))),
        2.0,
    ),
    (Call("year", (Literal(0, T),)), 1970),
    (Call("second", (Literal(61_999_999, T),)), 1),
    (Call("%", (number(-7), number(3))), -1),
    (Call("-", (Call("*", (double(1e308), double(10.0))), double(1e308))), None),
    (Call("/", (double(1.0), Call("*", (double(1e308), double(10.0))))), None),
    (Call("abs", (Call("negate", (double(2.5),)),)), 2.5),
]


@pytest.fixture(scope="module")
def meanings(evaluate: Evaluate) -> list[Any]:
    """The values of all expressions in `MEANINGS`, from one job."""
    [row] = evaluate([expression for expression, _ in MEANINGS], [{}])
    return row


@pytest.mark.parametrize("at", range(len(MEANINGS)))
def test_meaning(meanings: list[Any], at: int) -> None:
    expression, expected = MEANINGS[at]
    assert (meanings[at], type(meanings[at])) == (expected, type(expected)), expression
