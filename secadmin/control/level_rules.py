"""The level rules of streams: which companies their tuples are of (001 §3)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import orm

from catalog.conflict_class import LEVEL
from catalog.conflict_classes import conflict_classes
from catalog.errors import InvalidInput
from catalog.level_rule import CompanyRule, LevelRule
from catalog.models import StreamRow
from catalog.schema import Schema
from catalog.stored_form import from_stored
from secadmin.control.conflict_classes import find_class
from secadmin.control.work import Reading
from secadmin.languages import company_rule_text, parse_company_rule


def read_level_rule(view: Reading, rules: Mapping[str, str], schema: Schema) -> LevelRule | None:
    """The level rule of a new stream. `rules` has a text for each conflict class, by its name.

    Needs VIEW OBJECT on the conflict classes. Raises InvalidInput, with the position in the text.
    """
    if not rules:
        return None
    if schema.get(LEVEL) is not None:
        raise InvalidInput(
            "the platform makes the attribute level in a stream whose tuples are of companies; "
            "call that of the schema by another name"
        )
    found = [(find_class(view, name), text) for name, text in rules.items()]
    return LevelRule(
        tuple(
            CompanyRule(each.id, parse_company_rule(text, schema, each))
            for each, text in sorted(found, key=lambda pair: pair[0].id)
        )
    )


def shown_rules(session: orm.Session, row: StreamRow) -> Mapping[str, str] | None:
    """The rules of a stream as texts, by the names of the conflict classes."""
    if row.level_rule is None:
        return None
    rule = from_stored(LevelRule, row.level_rule)
    names = conflict_classes(session, rule.conflict_classes)
    return {
        names[each.conflict_class].name: company_rule_text(each.rule) for each in rule.companies
    }
