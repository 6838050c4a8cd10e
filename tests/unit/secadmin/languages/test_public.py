"""What other packages may use, and the examples in docstrings."""

from __future__ import annotations

import doctest

import pytest

import secadmin.languages
from catalog.errors import InvalidInput, Position
from secadmin.languages import duration
from secadmin.languages.expressions import literals
from secadmin.languages.writing import expression_text


def test_public_names() -> None:
    assert secadmin.languages.__all__ == [
        "Diagram",
        "DiagramResolver",
        "Resolver",
        "Statement",
        "UnknownRelation",
        "Unsayable",
        "company_rule_text",
        "expression_text",
        "parse_borealis",
        "parse_company_rule",
        "parse_condition",
        "parse_label_rule",
        "parse_sql",
        "rule_text",
        "sql_statement",
        "sql_text",
        "xml_text",
    ]


@pytest.mark.parametrize("module", [duration, expression_text, literals])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500", 500), ("0", 0), ("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("1d", 86_400_000)],
)
def test_short_durations(text: str, expected: int) -> None:
    assert duration.short_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "1.5s", "1 s", "1y", "5S", "1h30m", "401d", "9" * 99]
)
def test_unusable_durations(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        duration.short_ms(text, Position(3, 4))
    assert caught.value.position == Position(3, 4)
