"""Conditions as formulas of the solver z3, with SQL's three values: true, false, unknown (NULL).

A condition keeps a tuple only if it is true. So each part becomes two formulas: when it is true,
and when it is false. BIGINT and TIMESTAMP are whole numbers in their range, DOUBLE are real
numbers, and texts are compared by the numbers of their characters, as the platform does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from catalog.expression import AttributeRef, Call, Expression, Literal, type_of
from catalog.schema import AttributeType, Schema, Type, held_as

_WHOLE = (Type.BIGINT, Type.TIMESTAMP)
_LEAST, _MOST = -(2**63), 2**63 - 1
_LAST = 0x2FFFF
_COMPARED = frozenset({"=", "<>", "<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class Truth:
    """When a condition is true, and when it is false. Otherwise it is unknown."""

    true: z3.BoolRef
    false: z3.BoolRef


@dataclass(frozen=True, slots=True)
class _Value:
    """A value, and when it is NULL."""

    value: Any
    null: z3.BoolRef
    type: Type


@dataclass
class Formulas:
    """Makes formulas over the tuples of one schema, which share the variables of its attributes.

    A part that the solver does not know, such as a function, may be anything. The formulas have a
    context of their own, because several threads may not share one.
    """

    schema: Schema
    context: z3.Context = field(default_factory=z3.Context)
    _values: dict[str, _Value] = field(default_factory=dict)
    _unknown: int = 0

    def truth(self, condition: Expression) -> Truth:
        """The formulas of a condition."""
        match condition:
            case Literal(bool() as value):
                return Truth(self._bool(value), self._bool(not value))
            case Literal():
                return Truth(self._bool(False), self._bool(False))
            case AttributeRef():
                known = self._value(condition)
                there = z3.Not(known.null)
                return Truth(z3.And(there, known.value), z3.And(there, z3.Not(known.value)))
            case Call("and", parts):
                each = [self.truth(part) for part in parts]
                return Truth(z3.And([t.true for t in each]), z3.Or([t.false for t in each]))
            case Call("or", parts):
                each = [self.truth(part) for part in parts]
                return Truth(z3.Or([t.true for t in each]), z3.And([t.false for t in each]))
            case Call("not", (part,)):
                inner = self.truth(part)
                return Truth(inner.false, inner.true)
            case Call("is_null", (part,)):
                null = self._is_null(part)
                return Truth(null, z3.Not(null))
            case Call(name, (left, right)) if name in _COMPARED:
                return self._comparison(name, self._value(left), self._value(right))
            case _:
                return self._anything()

    def ranges(self) -> Iterator[z3.BoolRef]:
        """What holds for every tuple: the ranges of whole numbers, and attributes without NULL."""
        for name, known in self._values.items():
            attribute = self.schema.get(name)
            if attribute is not None and attribute.required:
                yield z3.Not(known.null)
            if known.type in _WHOLE:
                yield z3.And(known.value >= _LEAST, known.value <= _MOST)

    def _is_null(self, part: Expression) -> z3.BoolRef:
        if type_of(part, self.schema) is Type.BOOLEAN and not isinstance(part, AttributeRef):
            inner = self.truth(part)
            return z3.Not(z3.Or(inner.true, inner.false))
        return self._value(part).null

    def _value(self, part: Expression) -> _Value:
        match part:
            case AttributeRef(name):
                attribute = self.schema.get(name)
                if attribute is not None and name not in self._values:
                    self._values[name] = self._variable(f"a:{name}", attribute.type)
                return self._values[name]
            case Literal(value, kind) if not _is_beyond(value):
                return self._constant(value, kind)
            case _:
                self._unknown += 1
                kind = type_of(part, self.schema)
                return self._variable(f"?:{self._unknown}", kind)

    def _anything(self) -> Truth:
        self._unknown += 1
        true, false = (
            z3.Bool(f"?:{self._unknown}:{side}", self.context) for side in ("true", "false")
        )
        return Truth(true, z3.And(false, z3.Not(true)))

    def _bool(self, value: bool) -> z3.BoolRef:
        return z3.BoolVal(value, self.context)

    def _variable(self, name: str, kind: AttributeType) -> _Value:
        # A nested value is its held form.
        held = held_as(kind)
        make = {
            Type.BOOLEAN: z3.Bool,
            Type.BIGINT: z3.Int,
            Type.TIMESTAMP: z3.Int,
            Type.DOUBLE: z3.Real,
            Type.STRING: z3.String,
        }[held]
        null = z3.Bool(f"{name}:null", self.context)
        return _Value(make(name, self.context), null, held)

    def _constant(self, value: object, kind: AttributeType) -> _Value:
        if value is None:
            return _Value(self._variable("none", kind).value, self._bool(True), held_as(kind))
        made: Any
        match kind:
            case Type.BOOLEAN:
                made = self._bool(bool(value))
            case Type.STRING:
                made = z3.StringVal(_escaped(str(value)), self.context)
            case Type.DOUBLE:
                made = z3.RealVal(repr(value), self.context)
            case _:
                made = z3.IntVal(int(str(value)), self.context)
        return _Value(made, self._bool(False), held_as(kind))

    def _comparison(self, name: str, left: _Value, right: _Value) -> Truth:
        if Type.BOOLEAN in (left.type, right.type) and name not in ("=", "<>"):
            return self._anything()
        one, two = _alike(left, right)
        holds = {
            "=": lambda: one == two,
            "<>": lambda: one != two,
            "<": lambda: one < two,
            "<=": lambda: one <= two,
            ">": lambda: two < one,
            ">=": lambda: two <= one,
        }[name]()
        there = z3.And(z3.Not(left.null), z3.Not(right.null))
        return Truth(z3.And(there, holds), z3.And(there, z3.Not(holds)))


def _is_beyond(value: object) -> bool:
    """Whether it is a text with a character that the solver does not have."""
    return isinstance(value, str) and any(ord(character) > _LAST for character in value)


def _escaped(text: str) -> str:
    """The text as the solver reads it: a backslash could begin the number of a character."""
    plain = frozenset(map(chr, range(0x20, 0x7F))) - {"\\"}
    return "".join(each if each in plain else f"\\u{{{ord(each):x}}}" for each in text)


def _alike(left: _Value, right: _Value) -> tuple[Any, Any]:
    """Both values, as numbers of one kind."""
    if left.type is right.type:
        return left.value, right.value
    return tuple(
        z3.ToReal(each.value) if each.type in _WHOLE else each.value for each in (left, right)
    )
