"""The allow-list: what each function takes and gives; everything else is refused."""

import pytest

from catalog.aggregates import (
    AGGREGATE_FUNCTIONS,
    DECLARABLE_FUNCTIONS,
    MAX_TOP,
    aggregate_rule,
    collecting,
    keeps_values,
)
from catalog.errors import InvalidInput, Position
from catalog.expression import (
    AttributeRef,
    Call,
    Expression,
    Literal,
    attributes_of,
    conjuncts,
    type_of,
)
from catalog.functions import MAX_DIGITS, REGEXP_GROUPS, SCALAR_FUNCTIONS, TRUNCATIONS
from catalog.schema import ArrayType, Attribute, AttributeType, Schema, Type, parse_type

LETTERS: dict[str, AttributeType] = {
    "b": Type.BOOLEAN,
    "n": Type.BIGINT,
    "d": Type.DOUBLE,
    "s": Type.STRING,
    "t": Type.TIMESTAMP,
    "A": parse_type("ARRAY<STRING>"),
    "N": parse_type("ARRAY<BIGINT>"),
    "D": parse_type("ARRAY<DOUBLE>"),
    "M": parse_type("MAP<STRING, DOUBLE>"),
    "S": parse_type("STRUCT<f STRING>"),
    "X": parse_type("ARRAY<ARRAY<ARRAY<ARRAY<BIGINT>>>>"),
}
SCHEMA = Schema(tuple(Attribute(name, kind) for name, kind in LETTERS.items()))
# function: the arguments it takes -> what it gives; and arguments that it does not take.
GIVES = {
    **dict.fromkeys(("+", "-", "*", "%"), ("nn>n nd>d dd>d", "n nnn ns ss bb tt")),
    "/": ("nn>d dn>d", "n ss tn"),
    **dict.fromkeys(("negate", "abs"), ("n>n d>d", "s b t nn")),
    **dict.fromkeys(("floor", "ceil"), ("n>n d>n", "s dd")),
    "sqrt": ("n>d d>d", "s"),
    **dict.fromkeys(
        ("=", "<>"), ("nn>b nd>b ss>b bb>b tt>b AA>b SS>b XX>b", "n ns st bn nnn DD MM AN")
    ),
    **dict.fromkeys(("<", "<=", ">", ">="), ("nn>b nd>b ss>b tt>b", "bb ns n AA SS")),
    **dict.fromkeys(("and", "or"), ("bb>b bbb>b", "b bn nn")),
    "not": ("b>b", "n bb s"),
    "is_null": ("b>b n>b d>b s>b t>b A>b M>b S>b", "nn"),
    "coalesce": ("nn>n nd>d ss>s sss>s tt>t AA>A MM>M", "n ns bt AN ND"),
    "case": ("bss>s bnd>d bnbnn>n btt>t bSS>S", "bs ss nss bsn bsbs sbs"),
    **dict.fromkeys(("upper", "lower", "trim"), ("s>s", "n ss b")),
    "length": ("s>n", "n"),
    "micros_between": ("tt>n", "t nn tn ttt"),
    "concat": ("ss>s sss>s", "s sn nn"),
    "substring": ("snn>s", "sn snnn nnn sdn"),
    **dict.fromkeys(("like", "ilike", "regexp_like"), ("sp>b", "s p sn np spp")),
    **dict.fromkeys(REGEXP_GROUPS, ("sp>s", "s p sn np spp")),
    "position": ("sp>n", "s p sn np spp"),
    **dict.fromkeys(("ltrim", "rtrim", "reverse"), ("s>s", "n ss b")),
    **dict.fromkeys(("starts_with", "ends_with"), ("ss>b", "s sn nn sss")),
    **dict.fromkeys(("greatest", "least"), ("nn>n nd>d ss>s ttt>t", "n bb ns AA")),
    "round": ("n2>n d2>d", "n d s2 dd 2 n22"),
    **{f"start_of_{unit}": ("t>t", "n s tt") for unit in TRUNCATIONS},
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second"), ("t>n", "n s tt")),
    "cast_bigint": ("n>n d>n s>n", "b t nn"),
    "cast_double": ("n>d d>d s>d", "b t"),
    "cast_string": ("n>s d>s b>s s>s", "t ss A"),
    "element": ("An>s Dn>d Ms>d", "A As Ad Mn Sn nn sn"),
    "field": ("Sf>s", "S Af Mf sf Sn Sff"),
    "cardinality": ("A>n X>n M>n", "S n AA"),
    "contains": ("As>b Nn>b Dn>b Dd>b", "A An Nd Ms XN sA"),
    "map_keys": ("M>A", "A S MM"),
    "map_values": ("M>D", "A S MM"),
    "array": ("s>A ss>A nn>N nd>D", "sn sA X"),
}
CASES = [
    (name, taken.partition(">")[0], LETTERS[taken.partition(">")[2]])
    for name, (gives, _) in GIVES.items()
    for taken in gives.split()
]
REFUSED = [(name, arguments) for name, (_, wrong) in GIVES.items() for arguments in wrong.split()]


def call(name: str, letters: str) -> Call:
    constants = {
        "f": Literal("f", Type.STRING),
        "p": Literal("(((((((((A%)))))))))", Type.STRING),
        "2": Literal(2, Type.BIGINT),
    }
    return Call(name, tuple(constants.get(each) or AttributeRef(each) for each in letters))


def test_each_function_of_the_allow_list_has_its_cases() -> None:
    assert set(GIVES) == set(SCALAR_FUNCTIONS)


@pytest.mark.parametrize(("name", "arguments", "result"), CASES)
def test_takes(name: str, arguments: str, result: AttributeType) -> None:
    assert type_of(call(name, arguments), SCHEMA) == result


@pytest.mark.parametrize(("name", "arguments"), [*REFUSED, *((name, "") for name in GIVES)])
def test_does_not_take(name: str, arguments: str) -> None:
    with pytest.raises(InvalidInput, match="takes"):
        type_of(call(name, arguments), SCHEMA)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (AttributeRef("s", Position(1, 9)), "is a constant, such as 'A%'"),
        (Call("concat", (Literal("A", Type.STRING),) * 2, Position(1, 9)), "is a constant"),
        (Literal("%a" * 128, Type.STRING, Position(1, 9)), "at most 255 characters"),
    ],
)
def test_a_pattern_is_a_short_constant(pattern: Expression, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 1, column 9: .*{words}"):
        type_of(Call("like", (AttributeRef("s"), pattern)), SCHEMA)
    none = Literal(None, Type.STRING)
    assert type_of(Call("like", (AttributeRef("s"), none)), SCHEMA) is Type.BOOLEAN


@pytest.mark.parametrize(
    ("digits", "words"),
    [
        (AttributeRef("n", Position(1, 9)), "is a constant, such as 2"),
        (Literal(-1, Type.BIGINT, Position(1, 9)), "is from 0 to 15"),
        (Literal(MAX_DIGITS + 1, Type.BIGINT, Position(1, 9)), "is from 0 to 15"),
        (Literal(None, Type.BIGINT, Position(1, 9)), "is from 0 to 15"),
    ],
)
def test_digits_are_a_small_constant(digits: Expression, words: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 1, column 9: the number of digits .*{words}"):
        type_of(Call("round", (AttributeRef("d"), digits)), SCHEMA)


def test_how_long_a_text_can_get_is_said_of_every_function_that_gives_one() -> None:
    bounded = {Type.BOOLEAN, Type.BIGINT, Type.DOUBLE, Type.TIMESTAMP}
    given = {name for name, _, result in CASES if result not in bounded}
    assert {f.name for f in SCALAR_FUNCTIONS.values() if f.growth is not None} == given


def test_no_letter_grows_more_in_another_case_than_is_said() -> None:
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for name, change in (("upper", str.upper), ("lower", str.lower)):
        times = max(len(change(each).encode()) / len(each.encode()) for each in letters)
        assert times <= (SCALAR_FUNCTIONS[name].growth or 0)


@pytest.mark.parametrize(
    "name", ["java_method", "reflect", "input_file_name", "current_user", "AND", "sum", ""]
)
def test_everything_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="not in the allow-list"):
        type_of(call(name, "s"), SCHEMA)


@pytest.mark.parametrize(
    ("name", "gives"),
    [
        ("count", "bn nn dn sn tn"),
        ("sum", "nn dd b- s- t-"),
        ("avg", "nd dd b- s- t-"),
        ("stddev", "nd dd b- s- t-"),
        ("min", "nn dd ss tt b-"),
        ("max", "nn dd ss tt b-"),
    ],
)
def test_aggregates(name: str, gives: str) -> None:
    for argument, result in (tuple(pair) for pair in gives.split()):
        expected = None if result == "-" else LETTERS[result]
        assert AGGREGATE_FUNCTIONS[name](LETTERS[argument]) is expected


@pytest.mark.parametrize(
    ("name", "gives", "values"),
    [
        ("collect_list", "b n d s t A M S", False),
        ("collect_set", "b n d s t A S D- M- X-", True),
        ("topk_1", "n d s t b- A- M- S-", False),
        (f"topk_{MAX_TOP}", "n", False),
        ("topkdistinct_3", "n d s t b- A-", True),
        ("count_distinct", "", True),
    ],
)
def test_aggregates_that_give_arrays(name: str, gives: str, values: bool) -> None:
    """`values` says that each different value is kept by itself."""
    rule = aggregate_rule(name)
    assert rule is not None
    for argument in gives.split():
        kind = LETTERS[argument[0]]
        assert rule(kind) == (None if argument.endswith("-") else ArrayType(kind))
    assert keeps_values(name) is values


@pytest.mark.parametrize("name", ["topk", "topk_0", "topk_01", "topk_-1", "topk_101", "collect"])
def test_no_other_aggregate_gives_an_array(name: str) -> None:
    assert (collecting(name), aggregate_rule(name)) == (None, None)


def test_a_field_is_one_of_its_structure() -> None:
    wrong = Literal("g", Type.STRING, Position(1, 9))
    with pytest.raises(InvalidInput, match="line 1, column 9: the structure has no field 'g'"):
        type_of(Call("field", (AttributeRef("S"), wrong)), SCHEMA)
    with pytest.raises(InvalidInput, match="the name of a field is a constant, such as 'price'"):
        type_of(Call("field", (AttributeRef("S"), AttributeRef("s"))), SCHEMA)


def test_what_gives_single_values_cannot_be_declared() -> None:
    assert {"count", "sum", "avg", "stddev"} == DECLARABLE_FUNCTIONS < set(AGGREGATE_FUNCTIONS)


def test_null_has_the_type_that_is_declared() -> None:
    every = set(LETTERS.values())
    assert {type_of(Literal(None, kind), SCHEMA) for kind in every} == every
    with pytest.raises(InvalidInput, match="does not fit the type"):
        type_of(Literal("[1]", LETTERS["N"]), SCHEMA)


def test_parts_of_a_condition() -> None:
    a, b, c = call("not", "b"), call("=", "nd"), call("is_null", "t")
    whole = Call("and", (Call("and", (a, b)), c))
    assert conjuncts(whole) == (a, b, c)
    assert conjuncts(Call("or", (a, b))) == (Call("or", (a, b)),)
    assert [found.name for found in attributes_of(whole)] == ["b", "n", "d", "t"]


def test_names_of_types() -> None:
    assert [parse_type(name) for name in ("BIGINT", " int ", "Text", "float")] == [
        *(Type.BIGINT, Type.BIGINT, Type.STRING, Type.DOUBLE),
    ]
    with pytest.raises(InvalidInput, match="unknown type 'blob'"):
        parse_type("blob")
