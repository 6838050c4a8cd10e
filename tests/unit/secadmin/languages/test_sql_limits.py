"""No text is too large or too deep to be answered, quickly, with a plan or InvalidInput."""

from __future__ import annotations

import json
import time

import pytest
from sqlglot.parser import Parser

from catalog.errors import InvalidInput
from catalog.plan import Plan
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.stored_form import from_stored, to_stored
from secadmin.languages import parse_sql
from tests.unit.secadmin.languages.streams import Streams

_DOUBLING = "".join(
    f", a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})" for i in range(1, 600)
)
LARGE = {
    "parentheses": "SELECT " + "(" * 30_000 + "1" + ")" * 30_000 + " AS x FROM trades",
    "sum": "SELECT 1" + "+1" * 29_000 + " AS x FROM trades",
    "conditions": "SELECT * FROM trades WHERE TRUE" + " AND TRUE" * 6_000,
    "list": f"SELECT * FROM trades WHERE volume IN ({','.join('1' * 9_000)})",
    "equations": "SELECT 1" + " = 1" * 12_000 + " AS x FROM trades",
    "dots": "SELECT a" + ".a" * 29_000 + " AS x FROM trades",
    "dotted calls": "SELECT price" + ".f()" * 3_000 + " AS x FROM trades",
    "casts": "SELECT 1" + "::bigint" * 7_000 + " AS x FROM trades",
    "nulls": "SELECT 1" + " IS NULL" * 7_000 + " AS x FROM trades",
    "not": "SELECT " + "NOT " * 15_000 + "TRUE AS x FROM trades",
    "minus": "SELECT " + "- " * 29_000 + "1 AS x FROM trades",
    "columns": f"SELECT {','.join(f'price AS p{i}' for i in range(4_000))} FROM trades",
    "union": "SELECT * FROM trades" + " UNION ALL SELECT * FROM trades" * 1_800,
    "doubling": f"WITH a0 AS (SELECT * FROM trades){_DOUBLING} SELECT * FROM a599",
    "joins": "SELECT * FROM trades" + " JOIN trades ON 1=1" * 2_800,
    "open joins": "SELECT * FROM trades" + " JOIN trades" * 4_500,
    "intervals": "SELECT " + "INTERVAL " * 7_000,
    "quotes": "'" * 60_001,
    "comments": "SELECT " + "/*" * 29_000,
    "digits": f"SELECT {'9' * 60_000} AS x FROM trades",
    "lines": "\n" * 60_000 + "x",
    "repeated operand": "SELECT "
    + "CASE WHEN " * 28
    + "price"
    + " BETWEEN 1 AND 2 THEN 1 ELSE 2 END" * 28
    + " AS x FROM trades",
    "too long": "SELECT price FROM trades" + " " * 65_536,
}


@pytest.mark.parametrize("name", LARGE)
def test_refused_quickly(name: str) -> None:
    start = time.process_time()
    with pytest.raises(InvalidInput):
        parse_sql(LARGE[name], Streams())
    assert time.process_time() - start < 10  # 0.2 s each; a hang is what must not be


# What sqlglot reads in two ways, each of them with all that is inside.
TWO_WAYS = {
    "structs": "SELECT " + "STRUCT(" * 29 + "INT" + ")" * 29 + " AS x FROM trades",
    "objects": "SELECT " + "OBJECT(price, " * 29 + "INT" + ")" * 29 + " AS x FROM trades",
    "types": "SELECT " + "INT(" * 29 + "1" + ")" * 29 + " AS x FROM trades",
    "first operands": "SELECT " + "DECIMAL(" * 29 + "1" + ", 2)" * 29 + " AS x FROM trades",
    "enums": "SELECT * FROM trades WHERE " + "1 < ENUM(" * 29 + "1" + ")" * 29,
    "casts": "SELECT " + "CAST(INT(" * 14 + "1" + ") AS INT)" * 14 + " AS x FROM trades",
}


@pytest.mark.parametrize("name", TWO_WAYS)
def test_work_does_not_double_with_each_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, advance = 0, Parser._advance

    def counted(parser: Parser, times: int = 1) -> None:
        nonlocal steps
        steps += 1
        if steps > 200_000:
            raise OverflowError  # enough to tell; to the end it is hours
        advance(parser, times)

    monkeypatch.setattr(Parser, "_advance", counted)
    with pytest.raises(InvalidInput):
        parse_sql(TWO_WAYS[name], Streams())
    assert 0 < steps < 150_000


ALLOWED = {
    "parentheses": "SELECT " + "(" * 30 + "1" + ")" * 30 + " AS x FROM trades",
    "calls": "SELECT " + "abs(" * 30 + "price" + ")" * 30 + " AS x FROM trades",
    "cases": "SELECT " + "CASE WHEN TRUE THEN " * 30 + "1" + " END" * 30 + " AS x FROM trades",
    "derived tables": "SELECT price + 1 AS price FROM ("
    + "SELECT price AS price FROM (" * 28
    + "SELECT price FROM trades"
    + ")" * 29,
    "conditions": "SELECT * FROM trades WHERE price > 1" + " AND price > 1" * 900,
    "list": f"SELECT * FROM trades WHERE volume IN ({','.join('1' * 1_300)})",
    "union": "SELECT * FROM trades" + " UNION ALL SELECT * FROM trades" * 900,
    "sum": "SELECT 1" + " + price" * 49 + " AS x FROM trades",
}


@pytest.mark.parametrize("name", ALLOWED)
def test_within_the_limits_a_plan_can_be_stored(name: str) -> None:
    plan = parse_sql(ALLOWED[name], Streams()).plan
    assert from_stored(Plan, json.loads(json.dumps(to_stored(plan)))) == plan


class Wide:
    """A resolver of streams with as many attributes as there may be."""

    def relation(self, name: str) -> Relation:
        """A stream of that name."""
        attributes = tuple(Attribute(f"a{i}", Type.BIGINT) for i in range(200))
        return Relation(1, name, RelationKind.STREAM, Schema(attributes), None, 0)


def _copies(select: str, count: int) -> str:
    return f"WITH a AS ({select}) SELECT * FROM a" + " UNION ALL SELECT * FROM a" * (count - 1)


_SELECTS = {
    # A constant, a comparison and the left side again for each choice.
    "conditions": f"SELECT * FROM wide WHERE a1 IN ({','.join('1' * 1_300)})",
    "columns": f"SELECT {','.join(f'a{i} AS b{i}' for i in range(200))} FROM wide",
    "texts": f"SELECT '{'x' * 40_000}' AS text FROM wide",
    "sources": "SELECT * FROM wide",
}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("columns", 124),
        pytest.param("conditions", 12, marks=pytest.mark.long),
        pytest.param("texts", 82, marks=pytest.mark.long),
        pytest.param("sources", 248, marks=pytest.mark.long),
    ],
)
def test_a_part_that_is_used_often_is_stored_as_often(name: str, most: int) -> None:
    plan = parse_sql(_copies(_SELECTS[name], most), Wide()).plan
    assert from_stored(Plan, json.loads(json.dumps(to_stored(plan)))) == plan
    with pytest.raises(InvalidInput, match="more than 50000 parts"):
        parse_sql(_copies(_SELECTS[name], most + 1), Wide())


_IN = [f"t.volume IN ({'1,' * 1_300}{i})" for i in range(13)]
_GROUPED = "FROM trades AS t GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)"
LARGE_NODES = {
    "columns": f"SELECT {', '.join(f'{part} AS x{i}' for i, part in enumerate(_IN))} FROM trades t",
    "keys": f"SELECT count(*) AS n {_GROUPED}, {', '.join(_IN)}",
    "aggregations": "SELECT "
    + ", ".join(f"max(CASE WHEN {part} THEN 1 END) AS m{i}" for i, part in enumerate(_IN))
    + f" {_GROUPED}",
    "join": "SELECT t.ts FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol AND q.at = t.ts"
    + "".join(f" AND {part}" for part in _IN),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name == "keys" else pytest.param(name, marks=pytest.mark.long)
        for name in LARGE_NODES
    ],
)
def test_one_box_may_have_too_many_parts(name: str) -> None:
    with pytest.raises(InvalidInput, match="more than 50000 parts"):
        parse_sql(LARGE_NODES[name], Streams())
