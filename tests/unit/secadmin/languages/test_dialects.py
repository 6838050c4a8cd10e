"""SQL as people write it elsewhere: each sentence of dialects.json, and docs/language.md.

A case has the plan, or the error with its place. `wanted` says whether the language is to accept
it. `MISSING` names the operator that each other case waits for.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from secadmin.languages import parse_sql
from tests.unit.secadmin.languages.shorthand import show
from tests.unit.secadmin.languages.streams import Streams

ROOT = Path(__file__).parents[4]
CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("dialects.json").read_text())
EXAMPLES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "language.md").read_text(), re.DOTALL)
# Sentences that are to be accepted, and what each waits for: the error names it.
MISSING = {
    # A temporal filter is accepted or refused; the error says which window to write.
    "postgres-26": "HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR)",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_sentence(case: dict[str, str]) -> None:
    if "plan" in case:
        plan = parse_sql(case["text"], Streams())
        assert show(plan) == case["plan"]
        assert analyse(plan.plan) == plan
        return
    with pytest.raises(InvalidInput) as caught:
        parse_sql(case["text"], Streams())
    assert str(caught.value) == case["error"]
    assert caught.value.position is not None


def test_each_sentence_is_answered_as_is_wanted_or_waits_for_an_operator() -> None:
    refused = {case["id"]: case["error"] for case in CASES if "error" in case}
    wanted = {case["id"] for case in CASES if case["wanted"] == "accept"}
    assert refused.keys() & wanted == MISSING.keys()
    assert {case["id"] for case in CASES} - wanted <= refused.keys()
    assert [key for key, operator in MISSING.items() if operator not in refused[key]] == []


def test_a_caret_is_under_the_word() -> None:
    """The column of an error is where the clause begins in the sentence."""
    words = {
        "postgres-25": "ORDER BY",
        "postgres-26": "now",
        "postgres-28": "EXCEPT",
        "typo-35": "SELEC ",
        "typo-37": "prce",
    }
    for case in CASES:
        if case["id"] in words:
            column = int(case["error"].split("column ")[1].split(":")[0])
            assert case["text"][column - 1 :].startswith(words[case["id"]])


@pytest.mark.parametrize("text", EXAMPLES)
def test_example(text: str) -> None:
    assert parse_sql(text, Streams(), "big").schema.names


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 20


def test_a_created_name_is_that_of_the_output() -> None:
    text = "CREATE VIEW other AS SELECT symbol FROM trades"
    assert parse_sql(text, Streams(), "other") == parse_sql(text, Streams())
    with pytest.raises(InvalidInput, match=r"column 13: the text creates 'other'.*called 'big'"):
        parse_sql(text, Streams(), "big")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("FROM TUMBLE(trades, ts, INTERVAL '1 hour') GROUP BY window_end", "TUMBLE"),
        (
            "FROM TABLE(TUMBLE(TABLE trades, DESCRIPTOR(ts), INTERVAL 1 HOUR)) GROUP BY window_end",
            "TUMBLE",
        ),
        ("FROM trades WINDOW TUMBLING (SIZE 60 MINUTES) GROUP BY 'x' || symbol", "KEY"),
        ("FROM trades GROUP BY window(ts, '1 hour')", "TUMBLE"),
        ("FROM trades GROUP BY window(ts, '1 hour', '1 hour', '5 hours')", "TUMBLE"),
        ("FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR, INTERVAL '0' HOUR)", "TUMBLE"),
    ],
)
def test_all_forms_of_a_window_are_one(text: str, same: str) -> None:
    plain = {
        "TUMBLE": "FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
        "KEY": "FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), 'x' || symbol",
    }
    plans = [parse_sql(f"SELECT count(*) AS n {each}", Streams()) for each in (text, plain[same])]
    assert plans[0] == plans[1]


def test_many_tables_are_read_in_linear_time() -> None:
    """A text of the largest size that never closes what it opens."""
    with pytest.raises(InvalidInput):
        parse_sql("SELECT 1 FROM " + "TABLE(TUMBLE(" * 5_000, Streams())
