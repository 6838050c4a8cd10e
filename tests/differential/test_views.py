"""What a role sees of a stream, on Spark and by a naive interpreter of views.

The naive one knows no plan of a view: it goes through the tuples one by one, in plain Python, and
leaves out what the role may not see. The oracle then runs the query over what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from pyspark.sql import Row, SparkSession

from catalog.plan import Plan
from catalog.relation import Relation
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow, checked_view
from catalog.view_plan import ViewedStream, through_views
from secadmin.languages import parse_condition, parse_sql
from tests.differential.case import Case, Outcome
from tests.differential.comparing import _difference as difference
from tests.differential.engine import run_cases, sent_records
from tests.differential.market import NOON, RECORDS, RELATIONS, Market, case_of
from tests.lanes import is_long
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value

TRADES = RELATIONS["trades"]
Values = Mapping[str, Value]
Sees = Callable[[Values], Values | None]
"""What is seen of a tuple of the trades, as plain Python says it. None: nothing."""


@dataclass(frozen=True)
class Seen:
    """A view, and the same view as plain Python."""

    view: RoleView
    sees: Sees


def _view(rows: str | None, *rights: AttributeRight, **more: object) -> RoleView:
    parsed = None if rows is None else parse_condition(rows, TRADES.schema)
    return checked_view(RoleView(parsed, rights or None, **more), TRADES)  # type: ignore[arg-type]


def _when(name: str, text: str) -> AttributeRight:
    return AttributeRight(name, parse_condition(text, TRADES.schema))


def _only(*names: str) -> Sees:
    return lambda values: {name: values[name] for name in names}


def _rows(holds: Callable[[Values], bool], then: Sees = lambda values: values) -> Sees:
    return lambda values: then(values) if holds(values) else None


def _over(limit: float) -> Callable[[Values], bool]:
    return lambda values: isinstance(values["price"], float) and values["price"] > limit


def _price_of_acme(values: Values) -> Values:
    price = values["price"] if values["symbol"] == "ACME" else None
    return {"ts": values["ts"], "symbol": values["symbol"], "price": price}


ATTRIBUTES = [AttributeRight("ts"), AttributeRight("symbol")]
VIEWS = {
    "rows": Seen(_view("price > 11"), _rows(_over(11))),
    "rows that are null": Seen(
        _view("NOT (volume < 6)"),
        _rows(lambda values: values["volume"] is not None and int(str(values["volume"])) >= 6),
    ),
    "attributes": Seen(_view(None, *ATTRIBUTES), _only("ts", "symbol")),
    "a conditional attribute": Seen(
        _view(None, *ATTRIBUTES, _when("price", "symbol = 'ACME'")), _price_of_acme
    ),
    "both": Seen(_view("price > 11", *ATTRIBUTES), _rows(_over(11), _only("ts", "symbol"))),
    "aggregates": Seen(
        _view(None, *ATTRIBUTES, AttributeRight("price", None, ("avg", "count", "max"))),
        _only("ts", "symbol", "price"),
    ),
    "windows": Seen(
        _view(
            None,
            AttributeRight("price", None, ("avg", "count")),
            AttributeRight("symbol"),
            window=SmallestWindow(120_000, 60_000),
        ),
        _only("ts", "symbol", "price"),
    ),
    "windows of tuples": Seen(
        _view(
            None,
            AttributeRight("ts", None, ("max",)),
            AttributeRight("price", None, ("avg", "count")),
            AttributeRight("symbol"),
            window=TupleWindow(2, 1),
        ),
        _only("ts", "symbol", "price"),
    ),
}
PLAIN = "SELECT * FROM trades"
COUNTED = """SELECT symbol, count(*) AS n FROM trades
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol"""
JOINED = """SELECT a.symbol FROM trades AS a JOIN quotes AS q ON a.symbol = q.symbol
AND q.at BETWEEN a.ts - INTERVAL '5' SECOND AND a.ts + INTERVAL '5' SECOND"""
MOVING = "SELECT ISTREAM symbol, count(*) AS n FROM trades [ROWS 2] GROUP BY symbol"
MEAN = """SELECT symbol, avg(price) AS mean, count(price) AS n FROM trades
GROUP BY TUMBLE(ts, INTERVAL '2' MINUTE), symbol"""
HOPPING = """SELECT avg(price) AS mean FROM trades
GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)"""
FULL = """SELECT ISTREAM symbol, avg(price) AS mean, count(price) AS n
FROM trades [PARTITION BY symbol ROWS 3 SLIDE 2] GROUP BY symbol"""
FULL_OF_ACME = """WITH t AS (SELECT * FROM trades WHERE symbol = 'ACME')
SELECT RSTREAM avg(price) AS mean, max(ts) AS last FROM t [ROWS 2 SLIDE 1]"""
PRICES = "SELECT symbol, price FROM trades WHERE price > 11 OR price IS NULL"
TEXTS = {
    "rows": (PLAIN, COUNTED, JOINED, MOVING, MEAN, PRICES),
    "rows that are null": (PLAIN, COUNTED, MOVING),
    "attributes": (PLAIN, COUNTED, JOINED, MOVING),
    "a conditional attribute": (PLAIN, COUNTED, MEAN, PRICES),
    "both": (PLAIN, COUNTED, JOINED),
    "aggregates": (COUNTED, MEAN),
    "windows": (MEAN, HOPPING),
    "windows of tuples": (FULL, FULL_OF_ACME),
}
# Views of which something is hidden, and what may be in its place.
HIDING = ("rows", "rows that are null", "attributes", "a conditional attribute", "both")
OTHER_VALUES: Mapping[str, tuple[Value, ...]] = {
    "ts": (NOON + timedelta(seconds=7), NOON + timedelta(hours=5)),
    "symbol": ("HIDDEN", None),
    "price": (10.5, None, 99.0),
    "volume": (3, None, 77),
}
# The sample lane has every other query of each view.
IDS = [
    (name, number)
    for name, texts in TEXTS.items()
    for number in range(0, len(texts), 1 if is_long() else 2)
]


@dataclass(frozen=True)
class Query:
    """A query through a view: what runs, and what the naive interpreter runs."""

    case: Case
    naive: Plan


class Narrow(Market):
    """The market as a role sees it."""

    def __init__(self, seen: ViewedStream) -> None:
        self.seen = seen

    def relation(self, name: str) -> Relation:
        return self.seen.relation if name == "trades" else super().relation(name)


def query(name: str, text: str, view: RoleView) -> Query:
    seen = ViewedStream(TRADES, view)
    naive = parse_sql(text, Narrow(seen)).plan
    return Query(case_of(name, through_views(naive, {TRADES.object_id: seen})), naive)


def naive_results(asked: Query, sees: Sees) -> list[Tuple]:
    """What the query gives over the tuples that plain Python lets through."""
    trades = []
    for record in RECORDS["trades"]:
        values = dict(zip(TRADES.schema.names, record.values, strict=True))
        seen = sees(values)
        if seen is not None:
            left = tuple(seen[name] for name in TRADES.schema.names if name in seen)
            trades.append(replace(record, values=left).tuple({}))
    others = {
        name: [record.tuple({}) for record in records]
        for name, records in RECORDS.items()
        if name != "trades"
    }
    return run(asked.naive.root, {**others, "trades": trades}, asked.case.reach_of)


QUERIES = {
    (name, number): query(f"{name} {number}", text, VIEWS[name].view)
    for name, texts in TEXTS.items()
    for number, text in enumerate(texts)
    if (name, number) in IDS
}
# Each of the trades is of a sender of its own. So the naive form of a minimum of senders is a
# condition on the number of values.
ENOUGH = _view(None, *ATTRIBUTES, AttributeRight("price", None, ("avg", "count")), minimum=2)
A_MINUTE = MEAN.replace("'2' MINUTE", "'1' MINUTE")
OF_ENOUGH = query("minimum", A_MINUTE, ENOUGH)
OF_ONE = replace(
    OF_ENOUGH.case,
    name="one sender",
    records={"trades": [replace(each, sender=1) for each in RECORDS["trades"]]},
)
DISTINCT = query(
    "minimum, different values", A_MINUTE.replace("count(price)", "count(DISTINCT symbol)"), ENOUGH
)


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, Outcome]:
    """What all queries give on Spark, from one job."""
    cases = [*(each.case for each in QUERIES.values()), OF_ENOUGH.case, OF_ONE, DISTINCT.case]
    return dict(zip((case.name for case in cases), run_cases(spark, cases), strict=True))


@pytest.mark.parametrize(("name", "number"), IDS)
def test_a_query_gives_what_is_seen(outcomes: dict[str, Outcome], name: str, number: int) -> None:
    asked = QUERIES[name, number]
    wanted = naive_results(asked, VIEWS[name].sees)
    missing, wrong = difference(wanted, outcomes[asked.case.name].results, near=True)
    assert (missing, wrong) == ([], [])
    assert wanted, "the case says something"


def _changed(values: Values, sees: Sees) -> Values:
    """The tuple with all else changed that is not seen of it. What is seen stays the same."""
    for name, others in OTHER_VALUES.items():
        for other in others:
            changed = {**values, name: other}
            if other != values[name] and sees(changed) == sees(values):
                values = changed
                break
    return values


def _with_other_hidden_values(case: Case, sees: Sees) -> Case:
    """The case over other trades in place of these, which look the same through the view."""
    trades = []
    for record in case.records["trades"]:
        values = _changed(dict(zip(TRADES.schema.names, record.values, strict=True)), sees)
        trades.append(replace(record, values=tuple(values[n] for n in TRADES.schema.names)))
    assert trades != list(case.records["trades"])
    return replace(case, name=f"{case.name}, others", records={**case.records, "trades": trades})


def test_what_is_hidden_changes_nothing_that_is_delivered(spark: SparkSession) -> None:
    """No result, no id, no label and no number of results reveals it (002 §3.1, 003 §III)."""
    asked = [
        (QUERIES[name, number].case, VIEWS[name].sees)
        for name, number in (IDS if is_long() else IDS[::4])
        if name in HIDING
    ]
    others = [_with_other_hidden_values(*each) for each in asked]
    found = sent_records(spark, [*(case for case, _ in asked), *others])
    for (case, _), rows, again in zip(asked, found, found[len(asked) :], strict=False):
        assert _bytes(rows) == _bytes(again) != [], case.name


def _bytes(rows: list[Row]) -> list[tuple[object, ...]]:
    """All that Kafka would be given, in an order of its own."""
    made = [
        (
            row["topic"],
            row["key"],
            row["value"],
            [(h["key"], bytes(h["value"])) for h in row["headers"]],
        )
        for row in rows
    ]
    return sorted(made, key=str)


def test_groups_of_too_few_senders_are_left_out(outcomes: dict[str, Outcome]) -> None:
    naive = parse_sql(f"{A_MINUTE} HAVING count(price) >= 2", Market()).plan
    tables = {"trades": [record.tuple({}) for record in RECORDS["trades"]]}
    wanted = run(naive.root, tables, OF_ENOUGH.case.reach_of)
    everything = run(parse_sql(A_MINUTE, Market()).plan.root, tables, OF_ENOUGH.case.reach_of)
    missing, wrong = difference(wanted, outcomes["minimum"].results, near=True)
    assert (missing, wrong) == ([], [])
    assert 0 < len(wanted) < len(everything)
    # With several kinds of rows in the engine's state, as many groups are left out.
    assert len(outcomes["minimum, different values"].results) == len(wanted)


def test_many_values_of_one_sender_are_not_enough(outcomes: dict[str, Outcome]) -> None:
    tables = {
        "trades": [record.tuple(OF_ONE.users_of(TRADES)) for record in OF_ONE.records["trades"]]
    }
    assert run(OF_ONE.plan.root, tables, OF_ONE.reach_of) == outcomes["one sender"].results == []
