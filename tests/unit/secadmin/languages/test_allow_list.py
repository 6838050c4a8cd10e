"""No function reaches a plan but those of the allow-list, whatever Spark or sqlglot know."""

from __future__ import annotations

import pytest
from sqlglot.parser import Parser

from catalog.aggregates import AGGREGATE_FUNCTIONS
from catalog.errors import InvalidInput
from secadmin.languages import parse_sql
from secadmin.languages.expressions.functions import SCALAR
from secadmin.languages.expressions.windows import WINDOW_FUNCTIONS
from tests.unit.secadmin.languages.streams import Streams

_KNOWN = {name.upper() for name in (*SCALAR, *AGGREGATE_FUNCTIONS, *WINDOW_FUNCTIONS)}
_REFLECTING = {"REFLECT", "JAVA_METHOD", "TRY_REFLECT", "INPUT_FILE_NAME", "VERSION", "RAISE_ERROR"}
FUNCTIONS = sorted({*Parser.FUNCTIONS, *Parser.FUNCTION_PARSERS, *_REFLECTING} - _KNOWN)


@pytest.mark.parametrize("arguments", ["", "price", "symbol, symbol", "ts, price, symbol"])
def test_functions_outside_the_allow_list(arguments: str) -> None:
    accepted = []
    for name in FUNCTIONS:
        try:
            parse_sql(f"SELECT {name}({arguments}) AS x FROM trades", Streams())
            accepted.append(name)
        except InvalidInput:
            pass
    assert accepted == []
