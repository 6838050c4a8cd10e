"""The oracle's nodes, worked by hand."""

from __future__ import annotations

import pytest

from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Node,
    Project,
    Union,
    Window,
)
from catalog.relation import DeclaredAggregate
from tests.oracle.plans import watermark_of, windows
from tests.oracle.values import Tuple, timestamp
from tests.plans import grouped
from tests.unit.oracle.examples import (
    AGGREGATED,
    IN1,
    IN2,
    at,
    bigint,
    call,
    reach_of,
    ref,
    run,
    stream,
    tuples,
)

HOUR = 3_600_000
BOTH = IN1 | IN2
FAR = Label.of(70)


def _count(node: Node, window: Window, *keys: str) -> Aggregate:
    columns = tuple(Column(key, ref(key)) for key in keys)
    return grouped(node, window, columns, (Aggregation("n", "count", None),))


def test_source_shows_only_tuples_with_a_label_that_can_be() -> None:
    source = stream("s", IN1 | FAR)
    good = tuples(((at(1), "a", 1), IN1), ((at(1), "a", 2), IN1 | FAR))
    bad = tuples(((at(1), "a", 3), None), ((at(1), "a", 4), Label()), ((at(1), "a", 5), IN1 | IN2))
    assert run(source, {"s": [*good, *bad]}) == good


def test_an_empty_label_is_visible_where_the_relation_is_public() -> None:
    given = tuples(((at(1), "a", 1), Label()))
    assert run(stream("s", IN1, public=True), {"s": given}) == given


def test_filter_keeps_what_is_true_not_what_is_null() -> None:
    given = tuples(((at(1), "a", 1), IN1), ((at(1), "a", 9), IN1), ((at(1), "a", None), IN1))
    plan = Filter(stream("s", IN1), call(">", ref("v"), bigint(5)))
    assert run(plan, {"s": given}) == given[1:2]


def test_project_makes_a_new_tuple_with_the_old_label() -> None:
    plan = Project(stream("s", FAR), (Column("double", call("*", ref("v"), bigint(2))),))
    assert run(plan, {"s": tuples(((at(1), "a", 4), FAR))}) == [Tuple((8,), FAR)]


def test_union_keeps_repeated_tuples_and_each_label() -> None:
    one, two = tuples(((at(1), "a", 1), IN1), ((at(1), "a", 1), IN2))
    plan = Union((stream("in1", IN1), stream("in2", IN2), stream("in1", IN1)))
    assert run(plan, {"in1": [one], "in2": [two]}) == [one, two, one]


def test_join_pairs_equal_attributes_within_the_interval_both_ends_included() -> None:
    left = tuples(((at(12), "a", 1), IN1), ((at(12), None, 2), IN1), ((None, "a", 3), IN1))
    near = [((at(11, 59), "a", 1), IN2), ((at(12, 2), "a", 2), IN2)]
    far = [
        ((at(11, 58, 59), "a", 3), IN2),
        ((at(12, 2, 1), "a", 4), IN2),
        ((at(12), "b", 5), IN2),
        ((at(12), None, 6), IN2),
        ((None, "a", 7), IN2),
    ]
    plan = Join(
        stream("in1", IN1),
        stream("in2", IN2, prefix="r_"),
        ((ref("x"), ref("r_x")),),
        lower_ms=-60_000,
        upper_ms=120_000,
    )
    assert run(plan, {"in1": left, "in2": tuples(*near, *far)}) == [
        Tuple((at(12), "a", 1, at(11, 59), "a", 1), BOTH),
        Tuple((at(12), "a", 1, at(12, 2), "a", 2), BOTH),
    ]


def test_a_join_condition_that_is_null_makes_no_pair() -> None:
    one = tuples(((at(12), "a", 1), IN1))
    others = tuples(((at(12), "a", 2), IN2), ((at(12), "a", None), IN2), ((at(12), "a", 0), IN2))
    right = stream("in2", IN2, prefix="r_")
    condition = call("<", ref("v"), ref("r_v"))
    plan = Join(stream("in1", IN1), right, ((ref("x"), ref("r_x")),), 0, 0, condition)
    results = run(plan, {"in1": one, "in2": others})
    assert [each.values[-1] for each in results] == [2]


def _hours(source: Node, prefix: str) -> Project:
    """The number of tuples of each hour, under names with this prefix."""
    names = ("window_start", "window_end", "n")
    counted = _count(source, Window(HOUR, HOUR))
    return Project(counted, tuple(Column(prefix + name, ref(name)) for name in names))


def test_a_window_s_result_is_in_a_join_at_its_end_and_in_a_window_before_it() -> None:
    sides = (_hours(stream("in1", IN1), ""), _hours(stream("in2", IN2), "r_"))
    plan = Join(*sides, ((ref("n"), ref("r_n")),), 0, HOUR)
    tables = {
        "in1": tuples(((at(12), "a", 1), IN1)),
        "in2": tuples(*(((at(hour), "b", 1), IN2) for hour in (11, 12, 13, 14))),
    }
    assert run(plan, tables) == [
        Tuple((at(12), at(13), 1, at(hour), at(hour + 1), 1), BOTH) for hour in (12, 13)
    ]
    # A pair has the end of its left window, and is still in that window.
    assert run(_count(plan, Window(HOUR, HOUR)), tables) == [Tuple((at(12), at(13), 2), BOTH)]


def test_a_window_over_a_join_waits_for_the_older_tuple_of_a_pair() -> None:
    right = stream("in2", IN2, prefix="r_")
    pairs = Join(stream("in1", IN1), right, ((ref("x"), ref("r_x")),), -60_000, HOUR)
    plan = _count(pairs, Window(HOUR, HOUR))
    tables = {
        "in1": tuples(((at(12), "a", 1), IN1)),
        "in2": tuples(((at(12, 59), "a", 1), IN2)),
    }
    assert run(plan, tables, at(13, 59)) == []
    assert run(plan, tables, at(14)) == [Tuple((at(12), at(13), 1), BOTH)]


def test_windows_begin_at_1970_and_leave_out_their_end() -> None:
    tumbling, hopping = Window(HOUR, HOUR), Window(HOUR, HOUR // 2)
    assert windows(tumbling, at(12)) == [(at(12), at(13))]
    assert windows(tumbling, at(12, 59, 59)) == [(at(12), at(13))]
    assert windows(hopping, at(12, 40)) == [(at(12, 30), at(13, 30)), (at(12), at(13))]
    before = timestamp(-1)
    assert windows(tumbling, before) == [(timestamp(-HOUR * 1000), timestamp(0))]


def test_aggregate_takes_null_as_a_key_and_the_label_of_the_whole_group() -> None:
    given = tuples(
        ((at(12), "a", 1), IN1),
        ((at(12, 30), "a", None), IN2),
        ((at(12, 59), None, 4), IN1),
        ((None, "a", 5), FAR),
        ((at(13), "a", 6), IN1),
    )
    functions = ("count", "sum", "avg", "stddev", "min", "max")
    results = tuple(Aggregation(name, name, ref("v")) for name in functions)
    node = stream("s", IN1 | IN2 | FAR)
    plan = grouped(node, Window(HOUR, HOUR), (Column("x", ref("x")),), results)
    assert run(plan, {"s": given}) == [
        Tuple((at(12), at(13), "a", 1, 1, 1.0, None, 1, 1), BOTH),
        Tuple((at(13), at(14), "a", 1, 6, 6.0, None, 6, 6), IN1),
        Tuple((at(12), at(13), None, 1, 4, 4.0, None, 4, 4), IN1),
    ]


def test_aggregates_leave_out_nulls_and_a_sum_that_does_not_fit_is_null() -> None:
    big = 2**63 - 1
    given = tuples(*(((at(12), "a", v), IN1) for v in (big, None, big)))
    functions = ("count", "sum", "stddev")
    results = tuple(Aggregation(name, name, ref("v")) for name in functions)
    plan = grouped(stream("s", IN1), Window(HOUR, HOUR), (), results)
    assert run(plan, {"s": given}) == [Tuple((at(12), at(13), 2, None, 0.0), IN1)]


def test_only_windows_that_the_slowest_source_has_passed_are_closed() -> None:
    plan = _count(
        Union((stream("in1", IN1), stream("in2", IN2, lateness_ms=HOUR))), Window(HOUR, HOUR)
    )
    tables = {
        "in1": tuples(((at(12), "a", 1), IN1), ((at(18), "a", 1), IN1)),
        "in2": tuples(((at(13), "a", 1), IN2), ((at(15), "a", 1), IN2), ((at(20), "a", 1), None)),
    }
    mark = watermark_of(plan, tables, reach_of)
    assert mark == at(14)
    assert run(plan, tables, mark) == [
        Tuple((at(12), at(13), 1), IN1),
        Tuple((at(13), at(14), 1), IN2),
    ]
    assert watermark_of(plan, {**tables, "in1": []}, reach_of) is None


DECLARED = DeclaredAggregate(HOUR, ("x",), ("count", "sum"), 2, source=0, aggregated=AGGREGATED)


@pytest.mark.parametrize(
    ("window_ms", "keys", "labels", "expected"),
    [
        pytest.param(HOUR, "x", [IN1, IN1], Label.of(AGGREGATED), id="lowered"),
        pytest.param(HOUR, "x", [IN1 | FAR, IN1], Label.of(AGGREGATED) | FAR, id="others-stay"),
        pytest.param(HOUR, "x", [IN1], IN1, id="too-few"),
        pytest.param(2 * HOUR, "x", [IN1, IN1], IN1, id="another-window"),
        pytest.param(HOUR, "", [IN1, IN1], IN1, id="other-keys"),
        pytest.param(HOUR, "x", [FAR, FAR], FAR, id="without-the-source"),
    ],
)
def test_a_declared_aggregate(
    window_ms: int, keys: str, labels: list[Label], expected: Label
) -> None:
    source = stream("s", IN1 | FAR, declared=DECLARED)
    plan = _count(source, Window(window_ms, window_ms), *keys)
    values = (at(12), "a", 1)
    given = [Tuple(values, label, sender) for sender, label in enumerate(labels)]
    assert [each.label for each in run(plan, {"s": given})] == [expected]


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        pytest.param([(1, 5), (2, 6)], True, id="two-senders"),
        pytest.param([(1, 5), (1, 6), (1, 7)], False, id="one-that-sends-thrice"),
        pytest.param([(1, 5), (None, 6), (None, 7)], False, id="others-do-not-count"),
        pytest.param([(1, 5), (2, None)], False, id="values-of-one-alone"),
        pytest.param([(1, 5), (2, None), (2, 6)], True, id="one-value-suffices"),
    ],
)
def test_a_declared_aggregate_counts_senders(
    sent: list[tuple[int | None, int | None]], shown: bool
) -> None:
    source = stream("s", IN1, declared=DECLARED)
    total = Aggregation("total", "sum", ref("v"))
    plan = grouped(source, Window(HOUR, HOUR), (Column("x", ref("x")),), (total,))
    given = [Tuple((at(12), "a", value), IN1, sender) for sender, value in sent]
    (result,) = run(plan, {"s": given})
    assert result.label == (Label.of(AGGREGATED) if shown else IN1)


def test_a_filter_below_makes_a_declared_aggregate_an_ordinary_one() -> None:
    source = Filter(stream("s", IN1, declared=DECLARED), call("=", ref("x"), ref("x")))
    given = [Tuple((at(12), "a", 1), IN1, sender) for sender in range(3)]
    results = run(_count(source, Window(HOUR, HOUR), "x"), {"s": given})
    assert [each.label for each in results] == [IN1]
