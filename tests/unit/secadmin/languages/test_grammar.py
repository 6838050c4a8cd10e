"""The examples of grammar.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import secadmin.languages
from catalog import plan_check, plan_rules, schema
from secadmin.languages import building, parse_sql, typed
from secadmin.languages.expressions import tokens
from secadmin.languages.expressions.functions import SCALAR
from tests.unit.secadmin.languages.streams import Streams

GRAMMAR = (Path(secadmin.languages.__file__).parent / "grammar.md").read_text()
SQL = re.findall(r"```sql\n(.*?)```", GRAMMAR, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(SQL) >= 5


@pytest.mark.parametrize("text", SQL)
def test_sql(text: str) -> None:
    parse_sql(text, Streams())


def test_functions_are_described() -> None:
    described = set(re.findall(r"[A-Z_]+", GRAMMAR))
    aliases = {"CEILING", "CHARACTER_LENGTH", "SUBSTR"}
    assert {name.upper() for name in SCALAR} - aliases <= described


def test_limits_are_described() -> None:
    limits = GRAMMAR.partition("## Limits")[2]
    days = plan_rules.MAX_WINDOW_MS // 86_400_000
    assert f"{days} days" in limits
    for limit, what in (
        (plan_check.MAX_NODES, "boxes"),
        (building.MAX_DEPTH, "in a row"),
        (schema.MAX_ATTRIBUTES, "attributes"),
        (typed.MAX_SIZE, "parts"),
        (typed.MAX_DEPTH, "levels"),
        (tokens.MAX_NESTING, "levels"),
        (building.MAX_PARTS, "parts"),
    ):
        assert f"{limit:,} {what}" in limits


@pytest.mark.parametrize(
    ("written", "meant"),
    [("INT", "BIGINT"), ("FLOAT", "DOUBLE"), ("VARCHAR", "STRING"), ("TEXT", "STRING")],
)
def test_types_of_other_systems_are_described(written: str, meant: str) -> None:
    plans = [
        parse_sql(f"SELECT CAST(price AS {name}) AS x FROM trades", Streams())
        for name in (written, meant)
    ]
    assert plans[0] == plans[1]
    types = next(line for line in GRAMMAR.splitlines() if line.startswith("| types |"))
    assert f"`{written}`" in types
