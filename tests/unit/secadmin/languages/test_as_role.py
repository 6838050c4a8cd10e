"""AS role before a query (000 §4.1)."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from secadmin.languages import parse_sql, query_role
from tests.unit.secadmin.languages.streams import Streams

QUERY = "SELECT symbol FROM trades"


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (QUERY, None),
        (f"AS doctor {QUERY}", "doctor"),
        (f"as doctor\n{QUERY};", "doctor"),
        (f'AS "Night Shift" {QUERY}', "Night Shift"),
        (f"AS doctor WITH t AS ({QUERY}) SELECT symbol FROM t", "doctor"),
        (f"AS doctor CREATE VIEW v AS {QUERY}", "doctor"),
    ],
)
def test_the_role_of_a_query(text: str, role: str | None) -> None:
    assert query_role(text) == role
    plain = text[text.index("SELECT") :] if "WITH" not in text and "CREATE" not in text else text
    assert parse_sql(text, Streams()).plan == parse_sql(plain, Streams()).plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AS", "AS names the role"),
        ("AS 'doctor' " + QUERY, "line 1, column 4: AS names the role"),
        ("AS doctor", "a SELECT is missing"),
        ("AS doctor, nurse " + QUERY, "line 1, column 10: AS takes one role"),
        ("AS doctor INSERT INTO x", "INSERT INTO is not part"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        query_role(text)
    assert words in str(refused.value)
