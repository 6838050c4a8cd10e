"""Declared aggregates: when "source" becomes "source, aggregated", and when it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice

from pyspark.sql import SparkSession

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Node,
    Project,
    Source,
    Union,
    Window,
)
from catalog.reach import lowered_streams
from catalog.schema import Type
from tests.differential.case import Case, Record
from tests.differential.comparing import check_all
from tests.differential.expected import expected
from tests.differential.market import (
    DECLARED,
    MINUTE,
    NOON,
    TRADES,
    TRADES_AGGREGATED,
    case_of,
)
from tests.lanes import number_of
from tests.oracle.values import EPOCH, Tuple
from tests.plans import grouped, whole

_SOURCE = Source(DECLARED)
_PRICE, _SYMBOL = AttributeRef("price"), AttributeRef("symbol")
_VOLUME = AttributeRef("volume")
_SOURCE_LABEL = Label.of(TRADES)
_TWICE = Call("*", (_PRICE, Literal(2.0, Type.DOUBLE)))


def _aggregate(
    node: Node = _SOURCE,
    size: int = MINUTE,
    slide: int = MINUTE,
    keys: tuple[Expression, ...] = (_SYMBOL,),
    function: str = "sum",
    argument: Expression | None = _VOLUME,
) -> Aggregate:
    columns = tuple(Column(f"k{i}", key) for i, key in enumerate(keys))
    count = Aggregation("n", "count", None)
    result = Aggregation("result", function, argument)
    return grouped(node, Window(size, slide), columns, (count, result))


_TRUE = Literal(value=True, type=Type.BOOLEAN)
_ALL = tuple(Column(name, AttributeRef(name)) for name in DECLARED.schema.names)
LOWERED = {
    "sum": _aggregate(),
    "avg": _aggregate(function="avg"),
    "count of an attribute": _aggregate(function="count", argument=AttributeRef("ts")),
}
ORDINARY = {
    "another window": _aggregate(size=2 * MINUTE, slide=2 * MINUTE),
    "hopping": _aggregate(slide=MINUTE // 2),
    "no key": _aggregate(keys=()),
    "a key more": _aggregate(keys=(_SYMBOL, _VOLUME)),
    "a key twice": _aggregate(keys=(_SYMBOL, _SYMBOL)),
    "a computed key": _aggregate(keys=(Call("upper", (_SYMBOL,)),)),
    "a plain and a computed key": _aggregate(keys=(_SYMBOL, Call("upper", (_SYMBOL,)))),
    "another function": _aggregate(function="max"),
    "stddev, which is not declared": _aggregate(function="stddev"),
    "a computed argument": _aggregate(argument=_TWICE),
    "a filter below": _aggregate(Filter(_SOURCE, _TRUE)),
    "a projection below": _aggregate(Project(_SOURCE, _ALL)),
    "a union below": _aggregate(Union((_SOURCE, _SOURCE))),
}


def test_all_forms(interpreted: SparkSession) -> None:
    assert all(lowered_streams(whole(plan)) for plan in LOWERED.values())
    assert not any(lowered_streams(whole(plan)) for plan in ORDINARY.values())
    step = number_of("DECLARED_STEP", sample=4, long=1)
    plans = dict(islice({**LOWERED, **ORDINARY}.items(), 0, None, step))
    check_all(interpreted, [case_of(name, plan) for name, plan in plans.items()])


def test_lowered_results_next_to_others(spark: SparkSession) -> None:
    kept = Filter(_aggregate(), Call(">", (AttributeRef("n"), Literal(3, Type.BIGINT))))
    both = Union((_aggregate(), _aggregate(slide=MINUTE // 2)))
    check_all(spark, [case_of("filter above", kept), case_of("union", both)])


def test_neither_few_values_nor_part_of_a_window_is_lowered(spark: SparkSession) -> None:
    """ACME has four senders in the minute from noon on, three with volumes, two with prices."""
    declared = DECLARED.declared
    assert declared is not None
    noon = (NOON - EPOCH) // timedelta(milliseconds=1)
    plans = {"few values": _aggregate(argument=_PRICE), "whole": _aggregate()}
    for name, since in (("seen from its first moment", noon), ("seen in part", noon + 1)):
        relation = replace(DECLARED, declared=replace(declared, since_ms=since))
        plans[name] = _aggregate(Source(relation))
    cases = [case_of(name, plan) for name, plan in plans.items()]
    check_all(spark, cases)
    lowered = {case.name for case in cases if _shows_aggregates(case)}
    assert lowered == {"whole", "seen from its first moment"}


def test_only_independent_senders_count(spark: SparkSession) -> None:
    """Three must count; how often each of them sends does not matter."""
    groups = {
        "three": (1, 2, 3),
        "three of four": (9, 3, 1, 2, 2),
        "one that sends much": (1,) * 50,
        "two that send much": (1, 2) * 20,
        "one user's two topics": (1, 4, 2),
        "one that nobody marked": (1, 2, 9),
        "one that is unknown": (1, 2, None),
        "nobody that counts": (9, 9, 9, None),
    }
    records = [
        Record((NOON, name, 1.0, 1), _SOURCE_LABEL.to_wire(), sender)
        for name, senders in groups.items()
        for sender in senders
    ]
    users = {1: 0, 2: 63, 3: 31, 4: 0}
    case = replace(
        case_of("senders", _aggregate()), records={DECLARED.name: records}, independent={1: users}
    )
    check_all(spark, [case, replace(case, name="nobody is marked", independent={})])
    names = {each.values[2] for each in expected(case).results if _is_aggregated(each)}
    assert names == {"three", "three of four"}


def _is_aggregated(result: Tuple) -> bool:
    return result.label is not None and TRADES_AGGREGATED in result.label.categories()


def test_each_attribute_has_values_of_enough_senders(spark: SparkSession) -> None:
    """A fourth sender makes no value of the third one known."""
    volumes = {"enough": (1, 2, 3, None), "one's values": (1, 1, 1, 1), "few": (1, 2, None, None)}
    senders = {"enough": (1, 2, 3, 4), "one's values": (1, 1, 1, 2), "few": (1, 2, 3, 4)}
    records = [
        Record((NOON, name, 1.0, volume), _SOURCE_LABEL.to_wire(), sender)
        for name, given in volumes.items()
        for volume, sender in zip(given, senders[name], strict=True)
    ]
    users = {sender: sender for sender in range(1, 5)}
    case = replace(
        case_of("values", _aggregate()), records={DECLARED.name: records}, independent={1: users}
    )
    check_all(spark, [case])
    names = {each.values[2] for each in expected(case).results if _is_aggregated(each)}
    assert names == {"enough"}


def _shows_aggregates(case: Case) -> bool:
    return any(map(_is_aggregated, expected(case).results))


def test_categories_of_any_word(interpreted: SparkSession) -> None:
    """`source` and `aggregated` in one word or two, at their borders, too few or just enough."""
    declared = DECLARED.declared
    assert declared is not None
    pairs = [(0, 5), (63, 62), (0, 63), (63, 64), (64, 0), (127, 200), (200, 3)]
    cases = []
    for number, (source, aggregated) in enumerate(pairs):
        own = replace(declared, source=source, aggregated=aggregated)
        relation = replace(DECLARED, declared=own)
        reaches = {relation.object_id: Label.of(source, 90)}
        labels = [Label.of(source), Label.of(source, 90), Label.of(90)]
        groups = {
            "two": labels[:2],
            "three": [labels[0]] * 3,
            "mixed": labels,
            "other": [labels[2]] * 3,
        }
        records = [
            Record((NOON, name, 1.0, 1), label.to_wire(), sender)
            for name, members in groups.items()
            for sender, label in enumerate(members, start=1)
        ]
        case = case_of(f"{number}: {source} to {aggregated}", _aggregate(Source(relation)))
        cases.append(replace(case, records={relation.name: records}, reaches=reaches))
    check_all(interpreted, cases)


def test_the_market_has_a_group_that_is_lowered_and_one_that_is_not() -> None:
    held = [_is_aggregated(each) for each in expected(case_of("sum", LOWERED["sum"])).results]
    assert any(held)
    assert not all(held)
