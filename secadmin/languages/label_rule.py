"""Reads a label rule as people write it (000 §4.2).

    SENDER                                     each sender's own policy
    HEADER roles                               the value of a Kafka header
    'doctor | nurse'                           the same for all tuples
    allowed                                    the value of an attribute
    CASE WHEN ward = 'ICU' THEN 'doctor & icu' ELSE 'doctor | nurse' END

All but the first two are SQL expressions over the stream's attributes.
"""

from __future__ import annotations

from catalog.label_rule import ByExpression, ByHeader, BySender, LabelRule, check_rule, fixed_texts
from catalog.role_expression import read_role_expression
from catalog.schema import Schema
from secadmin.languages.condition import parse_single
from secadmin.languages.writing.expression_text import expression_text

MAX_BYTES = 20_000


def parse_label_rule(text: str, schema: Schema) -> LabelRule:
    """The label rule. Raises InvalidInput, with its position, for one that cannot be used.

    Constant results must be role expressions. Whether their roles exist is not looked up.
    """
    rule = parse_rule(text, schema, "a label rule")
    check_rule(rule, schema)
    for fixed in sorted(fixed_texts(rule)):
        read_role_expression(fixed)
    return rule


def rule_text(rule: LabelRule) -> str:
    """The rule as text, which `parse_label_rule` reads as the same."""
    match rule:
        case BySender():
            return "SENDER"
        case ByHeader(name):
            return f"HEADER {name}"
        case ByExpression(expression):
            return expression_text(expression)


def parse_rule(text: str, schema: Schema, what: str) -> LabelRule:
    """The rule of one of these forms. `what` is the word for it in errors."""
    match text.split():
        case [word] if word.upper() == "SENDER":
            return BySender()
        case [word, name] if word.upper() == "HEADER":
            return ByHeader(name)
    return ByExpression(parse_single(text, schema, what, MAX_BYTES).expression)
