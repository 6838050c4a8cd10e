"""A category that a stream gets later: the state goes on, and what was in it keeps its label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.plan import sources
from catalog.reach import reach
from catalog.relation import Relation
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record
from tests.differential.comparing import check
from tests.differential.delivered import outcome, run_of
from tests.differential.market import NOON, QUOTES, TRADES, Market, case_of
from tests.differential.streaming import run_batch

# More than a word has room for. The layout has two words, and the second is not used at first.
LATER = tuple(range(300, 364))
_TRADE, _QUOTE = 1, 3
_DAY_MS = 86_400_000
CLASSES = [Class(Clearance.of(*held)) for held in ((TRADES, QUOTES), (TRADES, QUOTES, *LATER), ())]


class _Patient(Market):
    """The market with time for late tuples: none of them comes too late."""

    def relation(self, name: str) -> Relation:
        return replace(super().relation(name), lateness_ms=_DAY_MS)


def _trade(second: int, *label: int) -> Record:
    return Record((NOON + timedelta(seconds=second), "ACME", 1.0, 1), Label.of(*label).to_wire())


def _quote(second: int) -> Record:
    time = NOON + timedelta(seconds=second)
    return Record((time, "ACME", 2.0, True), Label.of(QUOTES).to_wire())


FIRST = {"trades": [_trade(0, TRADES)], "quotes": [_quote(0)]}
SECOND = {
    "trades": [_trade(1, TRADES, LATER[-1]), _trade(2, LATER[0]), _trade(3, TRADES)],
    "quotes": [_quote(4)],
}
JOIN = """
    SELECT t.ts, t.price, q.at, q.bid FROM trades AS t JOIN quotes AS q ON t.symbol = q.symbol
    AND q.at BETWEEN t.ts - INTERVAL '5' SECOND AND t.ts + INTERVAL '5' SECOND"""
UPDATES = """
    SELECT symbol, count(*) AS n FROM trades
    GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol EMIT UPDATES"""


def _case(text: str, *batches: dict[str, list[Record]], later: Sequence[int] = ()) -> Case:
    """The query over the batches. `later` are the categories that trades have got by then."""
    case = case_of("growing", parse_sql(text, _Patient()), CLASSES)
    names = [relation.name for relation in sources(case.plan)]
    records = {name: [each for batch in batches for each in batch[name]] for name in names}
    reaches = {**case.reaches, _TRADE: Label.of(TRADES, *later), _QUOTE: Label.of(QUOTES)}
    return replace(case, records=records, reaches=reaches)


def _run_both(spark: SparkSession, text: str, folder: Path) -> list[list[Row]]:
    """What comes of each batch. Between the batches the trades get categories."""
    first, second = _case(text, FIRST), _case(text, SECOND, later=LATER)
    layout = LabelLayout(reach(first.plan, first.reach_of).categories(), words=2)
    grown = layout.grown(reach(second.plan, second.reach_of))
    assert grown is not None and len(grown.categories) > 64
    found: list[list[Row]] = [[], []]
    run_batch(spark, first, first, folder, found[0], layout=layout)
    run_batch(spark, second, second, folder, found[1], layout=grown)
    return found


def test_a_pair_with_a_tuple_of_before(spark: SparkSession, tmp_path: Path) -> None:
    before, after = _run_both(spark, JOIN, tmp_path)
    whole = _case(JOIN, FIRST, SECOND, later=LATER)
    check(whole, outcome(run_of(whole), [*before, *after]))
    assert len(after) > len(before) > 0


def test_a_group_that_was_begun_before(spark: SparkSession, tmp_path: Path) -> None:
    before, after = _run_both(spark, UPDATES, tmp_path)
    first, whole = _case(UPDATES, FIRST), _case(UPDATES, FIRST, SECOND, later=LATER)
    check(first, outcome(run_of(first), before), first.records)
    check(whole, outcome(run_of(whole), after), _case(UPDATES, SECOND).records)


def test_a_batch_with_a_category_that_is_new_is_done_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing of it is committed. With the newest reach nothing of it is left out."""
    known, later = _case(UPDATES, FIRST, SECOND), _case(UPDATES, FIRST, SECOND, later=LATER)
    layout = LabelLayout(reach(known.plan, known.reach_of).categories(), words=2)
    grown = layout.grown(reach(later.plan, later.reach_of))
    found: list[Row] = []
    with pytest.raises(StreamingQueryException):
        run_batch(spark, known, known, tmp_path, found, layout=layout, registered=LATER[0])
    assert found == []
    nothing = replace(later, records=dict.fromkeys(later.records, ()))
    run_batch(spark, later, nothing, tmp_path, found, layout=grown, registered=LATER[-1] + 1)
    check(later, outcome(run_of(later), found), later.records)


def test_a_plan_never_runs_with_a_layout_that_lacks_a_category(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = _case(UPDATES, SECOND, later=LATER)
    with pytest.raises(ValueError, match="no bit for a category"):
        run_batch(spark, case, case, tmp_path, [], layout=LabelLayout((TRADES,), 1))
