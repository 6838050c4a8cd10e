"""The boxes of the Borealis XML on real Spark, in three documents and one job."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from secadmin.languages import parse_borealis
from tests.differential.comparing import check_all
from tests.differential.expected import expected
from tests.differential.market import NOON, Market, case_of

DOCUMENTS = ("borealis_case.xml", "borealis_int_times.xml", "borealis_tuples.xml")
PLANS = [
    (name, plan)
    for document in DOCUMENTS
    for name, plan in parse_borealis(
        Path(__file__).with_name(document).read_text(), Market()
    ).outputs
]


def test_every_box(interpreted: SparkSession) -> None:
    assert len(PLANS) == 14
    check_all(interpreted, [case_of(name, plan) for name, plan in PLANS])


def _results(name: str) -> list[tuple[object, ...]]:
    plan = dict(PLANS)[name]
    return sorted((each.values for each in expected(case_of(name, plan)).results), key=repr)


@pytest.mark.parametrize(("name", "count"), [("near", 8), ("nearer", 6)])
def test_a_pair_is_nearer_than_the_buffer(name: str, count: int) -> None:
    """Four tuples at 0, 30, 30 and 61 s pair with themselves, and two with those 30 s later."""
    assert len(_results(name)) == count


def test_each_tuple_leaves_at_one_port() -> None:
    """A comparison with NULL is not true. So a tuple without a price leaves at the second port."""
    ports = [_results(name) for name in ("dear", "acme", "others")]
    assert [len(port) for port in ports] == [6, 3, 1]


def test_a_window_of_tuples_gives_one_result_when_it_is_full() -> None:
    """Also an equal one: the third result is of another window than the second."""
    most = 2**63 - 1
    assert _results("fours") == [(5,), (7,), (7,), (most,), (most,)]
    late = NOON + timedelta(seconds=59.999999)
    assert _results("threes") == [("ACME", NOON, 2), ("BETA", late, 3)]
