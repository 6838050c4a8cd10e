"""Paper 004 §3.2: figure 6 (union, then aggregate), its join, and figure 7 (A, B, C, D)."""

from __future__ import annotations

import pytest

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Aggregation, Column, Join, Node, Project, Union, Window
from tests.oracle.delivery import deliver_strong, deliver_weak
from tests.oracle.values import Tuple
from tests.plans import grouped
from tests.unit.oracle.examples import IN1, IN2, at, ref, run, stream, tuples

HOUR = 3_600_000
TABLES = {
    "in1": tuples(((at(12), "a", 1), IN1), ((at(14), "a", 7), IN1)),
    "in2": tuples(((at(12, 10), "a", 2), IN2)),
}
# What each user may read of in1 and in2: the first columns of figure 7.
USERS = {
    "A": Clearance(),
    "B": Clearance(IN2.bits),
    "C": Clearance(IN1.bits),
    "D": Clearance((IN1 | IN2).bits),
}
FROM_BOTH = Tuple((at(12), at(13), 3), IN1 | IN2)
FROM_IN1 = Tuple((at(14), at(15), 7), IN1)


def _figure_6() -> Node:
    merged = Union((stream("in1", IN1), stream("in2", IN2)))
    return grouped(merged, Window(HOUR, HOUR), (), (Aggregation("sum", "sum", ref("v")),))


def _join() -> Node:
    """SELECT in1.* FROM in1, in2 WHERE in1.x = in2.x"""
    right = stream("in2", IN2, prefix="r_")
    joined = Join(stream("in1", IN1), right, ((ref("x"), ref("r_x")),), -HOUR, HOUR)
    return Project(joined, tuple(Column(name, ref(name)) for name in ("ts", "x", "v")))


def test_figure_6() -> None:
    assert run(_figure_6(), TABLES) == [FROM_BOTH, FROM_IN1]


@pytest.mark.parametrize(
    ("user", "strong", "weak"),
    [
        ("A", [], []),
        ("B", [], [FROM_BOTH]),
        ("C", [FROM_IN1], [FROM_BOTH, FROM_IN1]),
        ("D", [FROM_BOTH, FROM_IN1], [FROM_BOTH, FROM_IN1]),
    ],
)
def test_figure_7(user: str, strong: list[Tuple], weak: list[Tuple]) -> None:
    results = run(_figure_6(), TABLES)
    assert deliver_strong(results, USERS[user]) == strong
    assert deliver_weak(results, USERS[user], IN1 | IN2) == weak


@pytest.mark.parametrize(
    ("user", "strong", "weak"), [("A", 0, 0), ("B", 0, 1), ("C", 0, 1), ("D", 1, 1)]
)
def test_figure_7_for_the_join_that_shows_only_in1(user: str, strong: int, weak: int) -> None:
    results = run(_join(), TABLES)
    assert results == [Tuple((at(12), "a", 1), IN1 | IN2)]
    assert len(deliver_strong(results, USERS[user])) == strong
    assert len(deliver_weak(results, USERS[user], IN1 | IN2)) == weak


def test_weak_leaves_categories_of_other_kinds_strict() -> None:
    company = Label.of(9)
    results = [Tuple((1,), IN1 | IN2 | company)]
    sources = IN1 | IN2
    assert deliver_weak(results, Clearance(IN1.bits), sources) == []
    assert deliver_weak(results, Clearance((IN1 | company).bits), sources) == results
    assert deliver_weak(results, Clearance(company.bits), sources) == []
