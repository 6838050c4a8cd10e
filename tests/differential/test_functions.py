"""Every function of the allow-list over every kind of argument, its borders among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random

from pyspark.sql import SparkSession

from catalog.aggregates import AGGREGATE_FUNCTIONS
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.functions import MAX_TEXT_BYTES, SCALAR_FUNCTIONS
from catalog.label import Label
from catalog.plan import Aggregation, Column, Project, Source, Window
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from tests.differential.case import Case, Class, Record
from tests.differential.comparing import check_all
from tests.differential.make_expression import EXTREME, MODERATE, REGULAR
from tests.lanes import number_of
from tests.oracle.values import EPOCH, Value, timestamp
from tests.plans import grouped, whole

# Rows of arguments of each number and kind, where there are more.
_MOST = number_of("FUNCTION_ARGUMENTS", sample=80, long=300)
_TEXTS = (
    *(" 7 ", "07", "-0", "+4", "--4", "1 2", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", ".5", "5.", ".", "1e3", "1E-3", "1e", "1e999", "NaN", "Infinity"),
    *("-inf", "0x10", "1_000", "\N{ARABIC-INDIC DIGIT ONE}", "\t7", "\x857\n", "\xa07"),
    *("a\nb", "a%b", "\\%", "a\\", "%\\", "Straße", "İ", "ǆ", "e\u0301"),
    *("AB", "É", "\u212a", "\u017f", "\u0131", "ς", "Σ", "ŉ", "ᾳ"),
)
_PATTERNS = (
    *(None, "", "%", "%%", "_", "__", "%_", "_%", "a%", "%a", "%a%", "a%b", "%a%b%", "a%a", "a_"),
    *(
        "%_b",
        "_a%_",
        "%\\%",
        "\\",
        "%.%",
        "a\nb",
        "%b",
        "%a%%a",
        "%1%",
        "é%",
        *("A_", "%É%", "k", "S", "i%", "\u03c3", "ß", "ŉ"),
        "%\U0001f600",
        "[",
        "(a)",
    ),
)
_DIGITS = (0, 1, 2, 7, 15)
_POOL: dict[Type, list[Value]] = {
    **{kind: [None, *values] for kind, values in EXTREME.items()},
    Type.STRING: [None, *EXTREME[Type.STRING], *_TEXTS],
    Type.TIMESTAMP: [
        *(None, timestamp(0), timestamp(-1), timestamp(951_782_400_000_000)),
        *(timestamp(-62_135_596_800_000_000), timestamp(253_402_300_799_999_999)),
    ],
}
# Who is delivered all: so the values are compared as JSON, too.
_REACHES = {1: Label.of(0)}
_CLASSES = (Class(Clearance.of(0)),)


def _relation(name: str, kinds: tuple[Type, ...]) -> Relation:
    attributes = [Attribute(f"a{index}", kind) for index, kind in enumerate(kinds)]
    schema = Schema((Attribute("ts", Type.TIMESTAMP), *attributes))
    return Relation(1, name, RelationKind.STREAM, schema, "ts", 0)


def _arguments(kinds: tuple[Type, ...]) -> list[tuple[Value, ...]]:
    every = list(product(*(_POOL[kind] for kind in kinds)))
    return every if len(every) <= _MOST else Random(len(every)).sample(every, _MOST)


def _call_case(names: Sequence[str], kinds: tuple[Type, ...], index: int) -> Case:
    """Each of the functions in a column of its own (or several, see `_calls`)."""
    relation = _relation(f"f{index}", kinds)
    references = tuple(AttributeRef(f"a{i}") for i in range(len(kinds)))
    shown = [Column(each.name, each) for each in references]
    calls = [call for name in names for call in _calls(name, references, kinds[-1])]
    made = (Column(f"result{i}", call) for i, call in enumerate(calls))
    plan = Project(Source(relation), (*shown, *made))
    records = [Record((EPOCH, *values), "1") for values in _arguments(kinds)]
    title = f"{', '.join(names)} of {', '.join(kinds)}"
    return Case(title, whole(plan), {relation.name: records}, _REACHES, _CLASSES)


def _calls(name: str, references: tuple[AttributeRef, ...], last: Type) -> list[Call]:
    """The function over the attributes, or with each constant where the last must be one."""
    function = SCALAR_FUNCTIONS[name]
    if not function.constant:
        return [Call(name, references)]
    texts = _PATTERNS if function.check is None else (None, *REGULAR)
    pool: tuple[int | str | None, ...] = texts if last is Type.STRING else _DIGITS
    return [Call(name, (references[0], Literal(each, last))) for each in pool]


def signatures() -> list[tuple[str, tuple[Type, ...]]]:
    """The functions of plain values, with the types of their arguments."""
    kinds = [kinds for count in (1, 2, 3) for kinds in product(Type, repeat=count)]
    return [(name, each) for name in SCALAR_FUNCTIONS for each in kinds if _fits(name, each)]


def _fits(name: str, kinds: tuple[Type, ...]) -> bool:
    # Of three arguments only what two do not show.
    enough = len(kinds) < 3 or name in ("substring", "case") or set(kinds) == {Type.BOOLEAN}
    return enough and SCALAR_FUNCTIONS[name].result(kinds) is not None


def test_every_function(interpreted: SparkSession) -> None:
    tried = signatures()
    assert {name for name, _ in tried} <= set(SCALAR_FUNCTIONS)
    # To plan a case takes longer than to compute a column: functions of equal arguments share one.
    # One with a constant has many columns already.
    together: dict[tuple[tuple[Type, ...], str], list[str]] = defaultdict(list)
    for name, kinds in tried:
        together[kinds, name if SCALAR_FUNCTIONS[name].constant else ""].append(name)
    groups = enumerate(together.items())
    check_all(interpreted, [_call_case(names, kinds, i) for i, ((kinds, _), names) in groups])


def test_texts_that_are_no_numbers(interpreted: SparkSession) -> None:
    case = _call_case(["cast_double", "cast_bigint"], (Type.STRING,), 0)
    texts = ("1d", "1f", "2.5D", "0x1p3", "\x7f7")
    records = {name: [Record((EPOCH, text), "1") for text in texts] for name in case.records}
    check_all(interpreted, [replace(case, records=records)])


def test_no_text_gets_longer_than_a_record(spark: SparkSession) -> None:
    """Results up to the limit, and NULL from there on, by every function that makes longer ones."""
    relation = _relation("long", (Type.STRING, Type.STRING))
    growing = [f.name for f in SCALAR_FUNCTIONS.values() if f.growth and f.name != "array"]
    a, b = AttributeRef("a0"), AttributeRef("a1")
    calls = [Call(name, (a, b) if name == "concat" else (a,)) for name in growing]
    calls += [Call("concat", (Call("concat", (a, a)), b)), Call("upper", (Call("concat", (a, b)),))]
    made = [Column(f"length{i}", Call("length", (call,))) for i, call in enumerate(calls)]
    lengths = [MAX_TEXT_BYTES // part + more for part in (1, 2, 3) for more in (-1, 0, 1)]
    records = [
        Record((EPOCH, "é" + "x" * (n - 2), b), "1") for n in lengths for b in ("", "y", None)
    ]
    plan = Project(Source(relation), tuple(made))
    check_all(spark, [Case("long", whole(plan), {"long": records}, _REACHES, _CLASSES)])


def test_constants_of_every_type(spark: SparkSession) -> None:
    relation = _relation("constants", ())
    values = {kind: [None, *MODERATE[kind]] for kind in Type if kind is not Type.TIMESTAMP}
    literals = [Literal(value, kind) for kind, pool in values.items() for value in pool]  # type: ignore[arg-type]
    literals += [Literal(us, Type.TIMESTAMP) for us in (None, -1, 0, 951_782_400_000_001)]
    columns = tuple(Column(f"c{i}", each) for i, each in enumerate(literals))
    plan = Project(Source(relation), columns)
    records = {"constants": [Record((EPOCH,), "1")]}
    check_all(spark, [Case("constants", whole(plan), records, _REACHES, _CLASSES)])


def _aggregate_case(name: str, kind: Type, index: int) -> Case:
    relation = _relation(f"g{index}", (Type.BIGINT, kind))
    inexact = name in ("avg", "stddev") or (name, kind) == ("sum", Type.DOUBLE)
    pool = [None, *(MODERATE if inexact else EXTREME)[kind]]
    random = Random(index)
    # Group n has n members: groups of NULLs only, of one value, of many.
    records = [
        Record((EPOCH, size, None if size == 3 else random.choice(pool)), "1")
        for size in range(1, 12)
        for _ in range(size)
    ]
    plan = grouped(
        Source(relation),
        Window(1000, 1000),
        (Column("size", AttributeRef("a0")),),
        (Aggregation("result", name, AttributeRef("a1")),),
    )
    return Case(f"{name}({kind})", whole(plan), {relation.name: records}, _REACHES, _CLASSES)


def test_every_aggregate_function(interpreted: SparkSession) -> None:
    pairs = [(n, kind) for n, rule in AGGREGATE_FUNCTIONS.items() for kind in Type if rule(kind)]
    check_all(interpreted, [_aggregate_case(n, kind, i) for i, (n, kind) in enumerate(pairs)])
