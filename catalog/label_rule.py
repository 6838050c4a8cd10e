"""Label rules: where the role expression of a tuple comes from (000 §4.2).

A stream without a rule gives each tuple its source category alone. With a rule, the tuple also gets
the categories of its expression's clauses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput
from catalog.expression import Call, Expression, Literal, type_of
from catalog.schema import Schema, Type

_HEADER = re.compile(r"[\x21-\x7e]{1,100}")


@dataclass(frozen=True, slots=True)
class BySender:
    """The sender's own policy, which is set by `secadmin policy`. Each sender has its own topic."""


@dataclass(frozen=True, slots=True)
class ByHeader:
    """The value of this header of the Kafka record, as UTF-8."""

    name: str


@dataclass(frozen=True, slots=True)
class ByExpression:
    """The value of a text expression over the tuple's attributes.

    A constant gives all tuples the same roles, an attribute lets each tuple name its own, and a
    CASE decides by the tuple's values.
    """

    expression: Expression


LabelRule = BySender | ByHeader | ByExpression


def check_rule(rule: LabelRule, schema: Schema) -> None:
    """Raise InvalidInput for a rule that cannot give a text for the tuples of this schema."""
    match rule:
        case ByHeader(name) if not _HEADER.fullmatch(name):
            raise InvalidInput(
                "the name of a header has 1 to 100 printable ASCII characters without blanks"
            )
        case ByExpression(Literal(None, _, position)):
            raise InvalidInput("a label rule gives a role expression, and not NULL", position)
        case ByExpression(expression):
            found = type_of(expression, schema)
            if found is not Type.STRING:
                raise InvalidInput(
                    f"a label rule gives a text, the role expression, and this one gives {found}",
                    expression.position,
                )


def fixed_texts(rule: LabelRule) -> frozenset[str]:
    """The role expressions that are known from the rule alone: its constant results."""
    return frozenset(_results(rule.expression)) if isinstance(rule, ByExpression) else frozenset()


def _results(expression: Expression) -> list[str]:
    """The constant texts that the expression can give as they are."""
    match expression:
        case Literal(str() as text):
            return [text]
        case Call("case", arguments):
            # Conditions and results take turns, and the last argument is the other result.
            return [text for each in (*arguments[1::2], arguments[-1]) for text in _results(each)]
        case Call("coalesce", arguments):
            return [text for each in arguments for text in _results(each)]
        case _:
            return []
