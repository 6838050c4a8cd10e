"""SEMANTICS VIEW before a query."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from secadmin.languages import parse_sql, sql_statement
from tests.unit.secadmin.languages.streams import Streams

QUERY = "SELECT symbol FROM trades"


@pytest.mark.parametrize(
    ("text", "semantics"),
    [
        (QUERY, None),
        (f"SEMANTICS VIEW {QUERY}", "view"),
        (f"semantics strong\n{QUERY};", "strong"),
        (f"AS doctor AT LEVEL [_, T] SEMANTICS VIEW {QUERY}", "view"),
        (f"SEMANTICS ISOLATED {QUERY}", "isolated"),
        (f"AS doctor, nurse SEMANTICS EXACT {QUERY}", "exact"),
        (f"SEMANTICS VIEW CREATE VIEW v AS {QUERY}", "view"),
        ("SELECT symbol AS semantics FROM trades", None),
    ],
)
def test_the_semantics_of_a_query(text: str, semantics: str | None) -> None:
    words = sql_statement(text)
    assert words.semantics == semantics
    if "LEVEL" in text:
        assert (words.roles, words.level) == (("doctor",), "[_, T]")
    if "AS semantics" not in text:
        assert parse_sql(text, Streams()).plan == parse_sql(QUERY, Streams()).plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SEMANTICS", "line 1, column 10: SEMANTICS is VIEW"),
        ("SEMANTICS weak " + QUERY, "line 1, column 11: SEMANTICS is VIEW"),
        ("SEMANTICS VIEW", "a SELECT is missing"),
        ("SEMANTIC VIEW " + QUERY, "did you mean SEMANTICS?"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sql_statement(text)
    assert words in str(refused.value)
