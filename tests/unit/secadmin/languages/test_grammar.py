"""The examples of grammar.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import secadmin.languages
from secadmin.languages import parse_borealis, parse_sql
from secadmin.languages.sql.functions import SCALAR
from tests.unit.secadmin.languages.streams import Streams

GRAMMAR = (Path(secadmin.languages.__file__).parent / "grammar.md").read_text()
SQL = re.findall(r"```sql\n(.*?)```", GRAMMAR, re.DOTALL)
XML = re.findall(r"```xml\n(.*?)```", GRAMMAR, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(SQL) >= 5
    assert len(XML) >= 1


@pytest.mark.parametrize("text", SQL)
def test_sql(text: str) -> None:
    parse_sql(text, Streams())


@pytest.mark.parametrize("text", XML)
def test_xml(text: str) -> None:
    assert parse_borealis(text, Streams()).outputs


def test_functions_are_described() -> None:
    described = set(re.findall(r"[A-Z_]+", GRAMMAR))
    aliases = {"CEILING", "CHARACTER_LENGTH", "SUBSTR"}
    assert {name.upper() for name in SCALAR} - aliases <= described
