"""AS role before a query (000 §4.1)."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from secadmin.languages import parse_sql, sql_statement
from tests.unit.secadmin.languages.streams import Streams

QUERY = "SELECT symbol FROM trades"


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (QUERY, ()),
        (f"AS doctor {QUERY}", ("doctor",)),
        (f"as doctor\n{QUERY};", ("doctor",)),
        (f'AS "Night Shift" {QUERY}', ("Night Shift",)),
        (f'AS nurse, "Night Shift",doctor {QUERY}', ("nurse", "Night Shift", "doctor")),
        (f"AS doctor WITH t AS ({QUERY}) SELECT symbol FROM t", ("doctor",)),
        (f"AS doctor, nurse CREATE VIEW v AS {QUERY}", ("doctor", "nurse")),
        (
            f"AS {', '.join(f'r{at}' for at in range(20))} {QUERY}",
            tuple(f"r{a}" for a in range(20)),
        ),
    ],
)
def test_the_roles_of_a_query(text: str, roles: tuple[str, ...]) -> None:
    assert sql_statement(text).roles == roles
    plain = text[text.index("SELECT") :] if "WITH" not in text and "CREATE" not in text else text
    assert parse_sql(text, Streams()).plan == parse_sql(plain, Streams()).plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AS", "AS names the roles"),
        ("AS 'doctor' " + QUERY, "line 1, column 4: AS names the roles"),
        ("AS doctor", "a SELECT is missing"),
        ("AS doctor, " + QUERY, "line 1, column 12: AS names the roles"),
        ("AS doctor,", "line 1, column 11: AS names the roles"),
        ("AS doctor, nurse, doctor " + QUERY, "line 1, column 19: AS names the role doctor twice"),
        (f"AS {','.join(f'r{at}' for at in range(21))} {QUERY}", "AS names at most 20 roles"),
        ("AS doctor INSERT INTO x", "INSERT INTO is not part"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sql_statement(text)
    assert words in str(refused.value)
