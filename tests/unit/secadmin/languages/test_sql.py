"""SQL becomes the plans of sql_plans.json and the errors of sql_errors.json; names are resolved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.analysis import analyse
from catalog.errors import Denied, InvalidInput, Position
from catalog.plan import Project
from catalog.relation import Relation
from secadmin.languages import UnknownRelation, parse_sql
from tests.unit.secadmin.languages.shorthand import show
from tests.unit.secadmin.languages.streams import Streams


def _cases(name: str) -> list[Any]:
    cases = json.loads(Path(__file__).with_name(name).read_text())
    return [pytest.param(case, id=case["id"]) for case in cases]


@pytest.mark.parametrize("case", _cases("sql_plans.json"))
def test_plan(case: dict[str, str]) -> None:
    plan = parse_sql(case["text"], Streams())
    assert show(plan) == case["plan"]
    assert analyse(plan.plan) == plan


@pytest.mark.parametrize("case", _cases("sql_errors.json"))
def test_error(case: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_sql(case["text"], Streams())
    assert str(caught.value) == case["error"]
    assert caught.value.position is not None


def test_every_use_of_a_name_is_resolved() -> None:
    streams = Streams()
    parse_sql(
        "WITH unused AS (SELECT * FROM quotes) SELECT * FROM trades UNION ALL SELECT * FROM trades",
        streams,
    )
    assert streams.asked == ["quotes", "trades", "trades"]


def test_unknown_relation_is_told_in_the_same_words_whatever_the_resolver_says() -> None:
    with pytest.raises(UnknownRelation) as caught:
        parse_sql("SELECT a\nFROM secret", Streams())
    assert str(caught.value) == "line 2, column 6: no stream or output 'secret'"
    assert caught.value.position == Position(2, 6)
    assert caught.value.status == 422


def test_other_refusals_of_the_resolver_pass_through() -> None:
    class Refusing:
        def relation(self, name: str) -> Relation:
            raise Denied(name)

    with pytest.raises(Denied):
        parse_sql("SELECT * FROM trades", Refusing())


@pytest.mark.parametrize(
    ("items", "expected"),
    [("window_end, count(*) AS n", "window_end"), ("window_end AS e, count(*) AS n", "e")],
)
def test_a_window_s_output_has_event_time(items: str, expected: str) -> None:
    plan = parse_sql(
        f"SELECT {items} FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)", Streams()
    )
    assert plan.event_time == expected


def test_positions_are_kept_in_the_plan() -> None:
    plan = parse_sql("SELECT\n  price\n  + 1 AS p FROM trades", Streams())
    root = plan.root.node
    assert isinstance(root, Project)
    assert root.columns[0].expression.position == Position(2, 3)
