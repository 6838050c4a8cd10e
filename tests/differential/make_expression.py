"""Random expressions of a type over a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import MAX_DIGITS, SCALAR_FUNCTIONS, TRUNCATIONS
from catalog.schema import Schema, Type
from tests.oracle.values import Value, microseconds, timestamp

_B, _N, _D, _S, _T = Type.BOOLEAN, Type.BIGINT, Type.DOUBLE, Type.STRING, Type.TIMESTAMP

# Doubles are quarters and few digits long: sums of them are exact in any order.
MODERATE: Mapping[Type, Sequence[Value]] = {
    _B: (True, False),
    _N: (-5, -1, 0, 1, 2, 3, 7, 10, 1000),
    _D: (-2.75, -1.0, -0.0, 0.0, 0.25, 1.5, 3.0, 100.5),
    _S: (
        *("", "a", "A", "b", "ab", "a%", "%b", "_", "a_", "\\", " a ", "é", "ß", "😀"),
        *("10", "-3", "1.5", "x1", "1e3", "+4", "true", "`", "'"),
    ),
    _T: tuple(timestamp(us) for us in (-1, 0, 500_000, 60_000_000, 1_769_860_800_000_000)),
}
EXTREME: Mapping[Type, Sequence[Value]] = {
    **MODERATE,
    _N: (*MODERATE[_N], 2**63 - 1, -(2**63), 2**53 + 1, 2**31, -(2**31) - 1),
    _D: (*MODERATE[_D], 1e308, -1e308, 1e-308, 9.3e18, -9.223372036854775808e18, 2.0**53, 0.1),
}

# Each has a group of its own, and eight that take nothing.
_GROUPED = (
    *("(a)", "(a|b)*", "^(.)", "(.)$", "([^a]+)%?", r"(\d+)", r"(\w)\W", "(?i)(A)b", "(a{2,}|x)1"),
    *(r"(\s?)a", r"([\d.]*)e", "(é|ß)", "()", "(😀|`)?"),
)
REGULAR = tuple(each + "()" * 8 for each in _GROUPED)
_PAIRS = ((_N, _N), (_D, _D), (_N, _D), (_D, _N))
_FUNCTIONS: Mapping[Type, Sequence[tuple[Sequence[str], Sequence[tuple[Type, ...]]]]] = {
    _B: (
        (("=", "<>", "<", "<=", ">", ">="), (*_PAIRS, (_S, _S), (_T, _T))),
        (("=", "<>"), ((_B, _B),)),
        (("and", "or"), ((_B, _B), (_B, _B, _B))),
        (("not",), ((_B,),)),
        (("is_null",), ((_B,), (_N,), (_D,), (_S,), (_T,))),
        (("like", "ilike"), ((_S, _S),)),
        (("regexp_like",), ((_S, _S),)),
        (("starts_with", "ends_with"), ((_S, _S),)),
    ),
    _N: (
        (("+", "-", "*", "%"), ((_N, _N),)),
        (("negate", "abs"), ((_N,),)),
        (("floor", "ceil", "cast_bigint"), ((_N,), (_D,))),
        (("length", "cast_bigint"), ((_S,),)),
        (("position",), ((_S, _S),)),
        (("micros_between",), ((_T, _T),)),
        (("round",), ((_N, _N),)),
        (("greatest", "least"), ((_N, _N),)),
        (("year", "month", "day", "hour", "minute", "second"), ((_T,),)),
    ),
    _D: (
        (("+", "-", "*", "%"), _PAIRS[1:]),
        (("/",), _PAIRS),
        (("negate", "abs"), ((_D,),)),
        (("sqrt", "cast_double"), ((_N,), (_D,))),
        (("cast_double",), ((_S,),)),
        (("round",), ((_D, _N),)),
        (("greatest", "least"), _PAIRS[1:]),
    ),
    _S: (
        (("upper", "lower", "trim", "ltrim", "rtrim", "reverse"), ((_S,),)),
        (("greatest", "least"), ((_S, _S), (_S, _S, _S))),
        (("concat",), ((_S, _S), (_S, _S, _S))),
        (("substring",), ((_S, _N, _N),)),
        (("cast_string",), ((_N,), (_B,), (_S,))),
        (("regexp_group_0", "regexp_group_1"), ((_S, _S),)),
    ),
    _T: (
        (tuple(f"start_of_{unit}" for unit in TRUNCATIONS), ((_T,),)),
        (("greatest", "least"), ((_T, _T),)),
    ),
}


@dataclass(frozen=True, slots=True)
class Expressions:
    """Makes expressions; `pool` holds the constants of each type."""

    random: Random
    pool: Mapping[Type, Sequence[Value]]

    def make(self, kind: Type, schema: Schema, depth: int) -> Expression:
        """An expression of the type `kind` with at most `depth` calls in another."""
        chance = self.random.random()
        if depth == 0 or chance < 0.25:
            return self._leaf(kind, schema)
        if chance < 0.4 or not _FUNCTIONS[kind]:
            return self._choice(kind, schema, depth)
        names, signatures = self.random.choice(_FUNCTIONS[kind])
        types = self.random.choice(signatures)
        arguments = [self.make(each, schema, depth - 1) for each in types]
        name = self.random.choice(names)
        if SCALAR_FUNCTIONS[name].constant:
            patterns = SCALAR_FUNCTIONS[name].check is not None
            arguments[1] = self._constant(arguments[1], types[1], patterns=patterns)
        return Call(name, tuple(arguments))

    def _constant(self, made: Expression, kind: Type, *, patterns: bool) -> Literal:
        """A last argument that is constant; it goes by what was made, so no later choice changes.

        It is a text, a regular expression, or a number of digits.
        """
        if patterns:
            return Literal(Random(repr(made)).choice(REGULAR), kind)
        if kind is _N:
            return Literal(Random(repr(made)).randint(0, MAX_DIGITS), kind)
        if isinstance(made, Literal):
            return made
        value = Random(repr(made)).choice(self.pool[_S])
        assert isinstance(value, str)
        return Literal(value, _S)

    def _leaf(self, kind: Type, schema: Schema) -> Expression:
        names = [a.name for a in schema.attributes if a.type is kind]
        if names and self.random.random() < 0.8:
            return AttributeRef(self.random.choice(names))
        return self.constant(kind)

    def constant(self, kind: Type) -> Literal:
        """A constant, now and then NULL."""
        value = None if self.random.random() < 0.1 else self.random.choice(self.pool[kind])
        if value is None or isinstance(value, bool | int | float | str):
            return Literal(value, kind)
        assert isinstance(value, datetime)
        return Literal(microseconds(value), kind)

    def _choice(self, kind: Type, schema: Schema, depth: int) -> Expression:
        """COALESCE or CASE, in which a DOUBLE may be beside BIGINTs."""
        mixed = [Type.DOUBLE, self.random.choice([_N, _D])] if kind is _D else [kind, kind]
        self.random.shuffle(mixed)
        values = [self.make(each, schema, depth - 1) for each in mixed]
        if self.random.random() < 0.5:
            return Call("coalesce", tuple(values))
        condition = self.make(_B, schema, depth - 1)
        return Call("case", (condition, *values))
