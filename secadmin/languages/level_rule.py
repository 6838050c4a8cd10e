"""Reads the rule that says which company of a conflict class a tuple is of (001 §3).

    SENDER                                     the level of each sender
    'Company1'                                 the same for all tuples
    sender_company                             the value of an attribute
    CASE WHEN receiver = 'B' THEN 'CompanyB' ELSE '_' END

T stands for several companies, and _ or ⊥ for none. All but SENDER are SQL expressions.
"""

from __future__ import annotations

from catalog.conflict_class import ConflictClass
from catalog.errors import InvalidInput
from catalog.label_rule import ByExpression, BySender, check_rule, fixed_texts
from catalog.schema import Schema
from secadmin.languages.label_rule import parse_rule, rule_text


def parse_company_rule(
    text: str, schema: Schema, of: ConflictClass, *, what: str = "a level rule"
) -> BySender | ByExpression:
    """The rule. Raises InvalidInput, with its position.

    Constant results must be companies of the conflict class, T or _.
    """
    rule = parse_rule(text, schema, what)
    if not isinstance(rule, BySender | ByExpression):
        raise InvalidInput(f"{what} is SENDER, or an SQL expression that gives a text")
    check_rule(rule, schema)
    unknown = sorted(each for each in fixed_texts(rule) if of.label_of(each) is None)
    if unknown:
        raise InvalidInput(
            f"the conflict class {of.name} has no company {unknown[0][:80]!r}; T means several "
            "companies, and _ none"
        )
    return rule


def company_rule_text(rule: BySender | ByExpression) -> str:
    """The rule as text, which `parse_company_rule` reads as the same."""
    return rule_text(rule)
