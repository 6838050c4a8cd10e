"""Semantics `exact`: what each role of a class sees has windows of its own, merged (000 §5.2.1).

The oracle runs the plan for each role alone, and knows from which tuples each result is: so it says
which results of two roles are one. The platform compares labels. EXACT_CASES sets how many random
cases of each kind there are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Emission
from catalog.runs import VIEW_BITS
from catalog.single_tuples import of_single_tuples
from catalog.upserts import upsert_keys
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record, exactly
from tests.differential.comparing import check_all
from tests.differential.delivered import header, run_of
from tests.differential.expected import expected
from tests.differential.hidden_inputs import Timed, topic, values
from tests.differential.market import COMPANY, EU, NOON, QUOTES, TRADES, Market, case_of
from tests.differential.streaming import run_batch
from tests.differential.test_class_views import CLEARANCES, KINDS, QUERIES
from tests.lanes import is_long, number_of
from tests.outputs import with_output

NUMBER = number_of("EXACT_CASES", sample=2, long=500)
TOGETHER = 25


def exact_cases(kind: str, start: int, count: int) -> list[Case]:
    """Cases of a kind, without those whose results replace each other."""
    cases = [exactly(KINDS[kind](seed)) for seed in range(start, start + count)]
    return [
        case
        for case in cases
        if case.plan.emission is Emission.CLOSED and not upsert_keys(case.plan)
    ]


@pytest.mark.parametrize("start", range(0, NUMBER, TOGETHER))
@pytest.mark.parametrize("kind", KINDS)
def test_generated(interpreted: SparkSession, kind: str, start: int) -> None:
    count = min(TOGETHER, NUMBER - start)
    print(f"{kind}: seeds {start} to {start + count - 1}")
    check_all(interpreted, exact_cases(kind, start, count))


@pytest.mark.long
def test_queries(spark: SparkSession) -> None:
    """With generated code, as in production."""
    classes = [Class(Clearance.of(*held)) for held in CLEARANCES]
    plans = {name: parse_sql(text, Market()) for name, text in QUERIES.items()}
    check_all(spark, [exactly(case_of(name, plan, classes)) for name, plan in plans.items()])


@pytest.mark.long
def test_the_cases_tell_exact_from_view() -> None:
    """Both together see more than each alone, and some results of two roles are one."""
    cases = [case for kind in KINDS for case in exact_cases(kind, 0, 6)]
    apart = [case for case in cases if not of_single_tuples(case.plan)]
    together = [replace(case, exact=False, view=True) for case in apart]
    pairs = [(expected(one), expected(two)) for one, two in zip(apart, together, strict=True)]
    assert sum(one.delivered != two.delivered for one, two in pairs) > len(apart) // 4
    merged = 0
    for case in apart:
        alone = [Class(way) for each in case.classes for way in each.ways]
        once = sum(map(len, expected(case).delivered[:-1]))
        merged += once < sum(map(len, expected(replace(case, classes=tuple(alone))).delivered))
    assert merged > len(apart) // 4


_NOON_MS = 1_769_860_800_000
_BOTH = Class(
    Clearance.of(TRADES, COMPANY, EU),
    ways=(Clearance.of(TRADES, COMPANY), Clearance.of(TRADES, EU)),
)
_MOVING = "SELECT ISTREAM sum(volume) AS total FROM trades [ROWS 2]"
_WINDOWS = (
    "SELECT window_start, sum(volume) AS total FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"
)
_PATTERN = (
    "SELECT match_time, low FROM trades MATCH_RECOGNIZE (ORDER BY ts MEASURES A.volume AS low "
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN INTERVAL '1' MINUTE "
    "DEFINE B AS volume > A.volume)"
)


def stream_case(sql: str, *classes: Class) -> Case:
    """The query over trades of which some are of a company, and some of the EU."""
    made = case_of("exact", parse_sql(sql, Timed()), classes or (_BOTH,))
    reaches = {**made.reaches, 1: Label.of(TRADES, COMPANY, EU, QUOTES)}
    return replace(made, reaches=reaches, records={"trades": ()}, exact=True)


def trade(at: int, volume: int, *held: int) -> Record:
    label = Label.of(TRADES, *held).to_wire()
    time = NOON + timedelta(seconds=at)
    return Record((time, "a", 1.0, volume), label, 1, f"1:0:{at}")


def delivered(spark: SparkSession, case: Case, folder: Path, *batches: list[Record]) -> list[Row]:
    """What the query gives batch by batch, each a minute later."""
    found: list[Row] = []
    for number, given in enumerate(batches, start=1):
        tick = _NOON_MS + number * 60_000
        batch = replace(case, records={"trades": given})
        run_batch(spark, case, batch, folder, found, tick_ms=tick, run=run_of(case))
    return found


FIRST = [trade(0, 1), trade(10, 2, COMPANY), trade(20, 3, EU)]
SECOND = [trade(61, 4), trade(62, 5)]
WANTED = {
    # The first window has other tuples for each role, and the second one the same.
    "windows": (_WINDOWS, "total", [3, 4, 9]),
    # For each role the newest two that it sees.
    "moving": (_MOVING, "total", [1, 3, 4, 6, 7, 9]),
    "pattern": (_PATTERN, "low", [1, 1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", WANTED if is_long() else ["windows"])
def test_in_a_stream_each_result_comes_once(spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql, of, wanted = WANTED[name]
    rows = delivered(spark, stream_case(sql), tmp_path, FIRST, SECOND, [])
    assert sorted(map(str, values(rows, "0", of))) == sorted(map(str, wanted))
    ids = [header(row, 1, "id") for row in rows]
    assert len(ids) == len(set(ids))
    labels = {Label.from_wire(header(row, 0, "label")) for row in rows}
    assert Label.of(TRADES, COMPANY, EU) not in labels, "no result is of two roles' tuples"


@pytest.mark.long
def test_what_no_role_sees_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Bytes, order, headers and ids stay. So they do if it is another role that sees more."""
    hidden = [trade(5, 7, COMPANY, EU), trade(11, 8, QUOTES), trade(63, 9, QUOTES)]
    for name, (sql, _, _) in WANTED.items():
        case, folder = stream_case(sql), tmp_path / name
        plain = delivered(spark, case, folder / "plain", FIRST, SECOND, [])
        mixed = delivered(
            *(spark, case, folder / "mixed"),
            *([*FIRST, *hidden[:2]], [*SECOND, hidden[2]], []),
        )
        assert topic(plain, "0") == topic(mixed, "0") != []


@pytest.mark.long
def test_classes_have_results_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """A class of one role beside one of two: other ids, and what that role sees alone."""
    alone = Class(Clearance.of(TRADES, COMPANY))
    case = stream_case(_WINDOWS, _BOTH, alone)
    rows = delivered(spark, case, tmp_path, FIRST, SECOND, [])
    assert sorted(map(str, values(rows, "1", "total"))) == ["3", "9"]
    ids = [header(row, 1, "id") for row in rows]
    assert len(ids) == len(set(ids)) == 5


def test_a_view_of_a_role_keeps_its_id_whatever_its_class_sees_now() -> None:
    """State goes by the id. A role that sees nothing has no view, and takes nobody's place."""
    run = run_of(stream_case(_WINDOWS))
    (own,) = run.classes
    assert [each.id for each in run.viewers or ()] == [own.id << VIEW_BITS, own.id << VIEW_BITS | 1]
    blind = replace(own, ways=(Clearance(), own.ways[1]))
    (left,) = with_output(run, classes=(blind,)).viewers or ()
    assert (left.id, left.clearance) == (own.id << VIEW_BITS | 1, own.ways[1])
    assert run.by_role and not run.labelled
    single = run_of(stream_case("SELECT symbol FROM trades"))
    assert single.viewers is None and not single.by_role and single.labelled
