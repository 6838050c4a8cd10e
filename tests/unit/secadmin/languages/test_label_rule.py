"""Label rules as people write them."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Literal
from catalog.label_rule import ByExpression, ByHeader, BySender, LabelRule, fixed_texts
from catalog.schema import Attribute, Schema, Type
from catalog.stored_form import from_stored, to_stored
from secadmin.languages import parse_label_rule, rule_text

SCHEMA = Schema(
    (
        Attribute("ward", Type.STRING),
        Attribute("allowed", Type.STRING),
        Attribute("bpm", Type.BIGINT),
    )
)
CASE = "CASE WHEN ward = 'ICU' OR bpm > 180 THEN 'doctor & icu' ELSE 'doctor | nurse' END"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SENDER", BySender()),
        (" sender ", BySender()),
        ("HEADER roles", ByHeader("roles")),
        ("header x-allowed", ByHeader("x-allowed")),
        ("'doctor'", ByExpression(Literal("doctor", Type.STRING))),
        ("allowed", ByExpression(AttributeRef("allowed"))),
    ],
)
def test_forms(text: str, rule: LabelRule) -> None:
    assert parse_label_rule(text, SCHEMA) == rule


@pytest.mark.parametrize("text", ["SENDER", "HEADER roles", "'doctor'", "allowed", CASE])
def test_a_rule_is_told_and_stored_as_it_is(text: str) -> None:
    rule = parse_label_rule(text, SCHEMA)
    assert parse_label_rule(rule_text(rule), SCHEMA) == rule
    assert from_stored(type(rule), to_stored(rule)) == rule


def test_the_results_of_a_condition_are_known_from_the_rule() -> None:
    assert fixed_texts(parse_label_rule(CASE, SCHEMA)) == {"doctor & icu", "doctor | nurse"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("HEADER é", "printable ASCII"),
        ("bpm", "a label rule gives a text, the role expression, and this one gives bigint"),
        ("ward_", "unknown attribute 'ward_'"),
        ("max(ward)", "MAX cannot be used in a label rule"),
        ("'doctor &'", "in the role expression, its end is not expected"),
        ("CASE WHEN bpm > 1 THEN 'a' ELSE 'b c' END", "join roles by & or |"),
        ("NULL", "and not NULL"),
        ("SELECT 1", "line 1, column 1"),
        ("ward; DROP TABLE x", "line 1, column 5"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_label_rule(text, SCHEMA)
    assert words in str(refused.value)
