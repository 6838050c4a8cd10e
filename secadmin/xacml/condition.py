"""Filter conditions (paper 002, section 3.5): comparisons of an attribute with a constant.

    condition = and ("OR" and)*         and = not ("AND" not)*
    not = "NOT" not | "(" condition ")" | NAME OPERATOR (NUMBER | 'TEXT')

Names are in lower case here, because the paper writes the same name in both cases.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from catalog.errors import InvalidInput

MAX_CHARACTERS = 4000
MAX_DEPTH = 20
OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?\d{1,18}(?:\.\d{1,18})?)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|[<>=()]))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """An attribute compared with a constant. A text has only = and !=."""

    attribute: str
    operator: str
    value: Decimal | str

    def __str__(self) -> str:
        if isinstance(self.value, Decimal):
            return f"{self.attribute} {self.operator} {self.value}"
        quoted = self.value.replace("'", "''")
        return f"{self.attribute} {self.operator} '{quoted}'"


@dataclass(frozen=True, slots=True)
class Junction:
    """Conditions joined by AND or OR."""

    word: str
    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(f"({part})" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT a condition."""

    part: Condition

    def __str__(self) -> str:
        return f"NOT ({self.part})"


Condition = Comparison | Junction | Negation


def attributes_of(condition: Condition) -> frozenset[str]:
    """The attributes that a condition names."""
    if isinstance(condition, Comparison):
        return frozenset({condition.attribute})
    parts = condition.parts if isinstance(condition, Junction) else (condition.part,)
    return frozenset().union(*(attributes_of(part) for part in parts))


def both(first: Condition | None, second: Condition | None) -> Condition | None:
    """The two conditions joined by AND, without what the rest implies. None is always true."""
    parts: list[Condition] = []
    for one in (first, second):
        if one is not None:
            for part in _conjuncts(one):
                _add(parts, part)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Junction("AND", tuple(parts))


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, Junction) and condition.word == "AND":
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _add(parts: list[Condition], new: Condition) -> None:
    if any(_implies(part, new) for part in parts):
        return
    parts[:] = [part for part in parts if not _implies(new, part)]
    parts.append(new)


def _implies(left: Condition, right: Condition) -> bool:
    """Whether `left` surely implies `right`: equal, or bounds of one attribute in one direction."""
    if left == right:
        return True
    if not (isinstance(left, Comparison) and isinstance(right, Comparison)):
        return False
    if left.attribute != right.attribute or left.operator[0] != right.operator[0]:
        return False
    if isinstance(left.value, str) or isinstance(right.value, str):
        return False
    if left.operator[0] not in "<>":
        return False
    if left.value == right.value:
        return right.operator.endswith("=")
    return bool(OPERATORS[right.operator[0]](left.value, right.value))


def parse_condition(text: str) -> Condition:
    """The condition of a text. Raises InvalidInput for one that is not of this grammar."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"a condition has more than {MAX_CHARACTERS} characters")
    parser = _Parser(list(_tokens(text)))
    condition = parser.junction("OR", 0)
    if parser.peek() != ("end", ""):
        raise parser.wrong("AND, OR or the end")
    return condition


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, text = 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidInput(f"condition: not readable at character {at + 1}")
        kind = str(found.lastgroup)
        word = found[kind]
        if kind == "word" and word.upper() in ("AND", "OR", "NOT"):
            yield "sign", word.upper()
        else:
            yield kind, word.lower() if kind == "word" else word
        at = found.end()
    yield "end", ""


@dataclass(slots=True)
class _Parser:
    tokens: list[tuple[str, str]]
    at: int = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def next(self) -> tuple[str, str]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def wrong(self, wanted: str) -> InvalidInput:
        found = self.peek()[1] or "the end"
        return InvalidInput(f"condition: {wanted} is expected, not {found[:40]}")

    def junction(self, word: str, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise InvalidInput(f"condition: more than {MAX_DEPTH} levels")
        parts = [self._part(word, depth)]
        while self.peek() == ("sign", word):
            self.next()
            parts.append(self._part(word, depth))
        return parts[0] if len(parts) == 1 else Junction(word, tuple(parts))

    def _part(self, word: str, depth: int) -> Condition:
        return self.junction("AND", depth) if word == "OR" else self._negation(depth)

    def _negation(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise InvalidInput(f"condition: more than {MAX_DEPTH} levels")
        if self.peek() == ("sign", "NOT"):
            self.next()
            return Negation(self._negation(depth + 1))
        if self.peek() == ("sign", "("):
            self.next()
            inner = self.junction("OR", depth + 1)
            if self.peek() != ("sign", ")"):
                raise self.wrong("a closing bracket")
            self.next()
            return inner
        return self._comparison()

    def _comparison(self) -> Comparison:
        if self.peek()[0] != "word":
            raise self.wrong("an attribute")
        name = self.next()[1]
        sign = self.peek()[1].replace("<>", "!=")
        if sign not in OPERATORS:
            raise self.wrong("a comparison")
        self.next()
        kind, value = self.peek()
        if kind == "text" and sign in ("=", "!="):
            self.next()
            return Comparison(name, sign, value[1:-1].replace("''", "'"))
        if kind != "number":
            raise self.wrong("a number, or a text after = or !=,")
        self.next()
        return Comparison(name, sign, Decimal(value))
