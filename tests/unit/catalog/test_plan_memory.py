"""The memory of a plan: the examples of SPEC.md, and its law against the oracle.

`DIFFERENTIAL_SEED` is the first seed, as in `tests/differential/test_generated.py`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest

from catalog.analysis import analyse
from catalog.canonical import sharing_key
from catalog.checked_plan import CheckedPlan
from catalog.placement import Placement
from catalog.plan import Source, at_sources, sources
from catalog.plan_memory import memory_ms, shared_memory_ms
from catalog.relation import Relation, RelationKind
from catalog.time_source import TimeSource
from secadmin.languages import parse_sql
from tests.differential.case import Case
from tests.differential.expected import tables_of
from tests.differential.make_case import (
    make_case,
    make_matching_case,
    make_mixed_case,
    make_moving_case,
)
from tests.differential.market import Market
from tests.lanes import number_of
from tests.oracle.plans import run
from tests.oracle.values import Tuple
from tests.spec import SpecMarket, sections

_FIRST = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
_SEEDS = range(_FIRST, _FIRST + number_of("MEMORY_CASES", sample=60, long=1_000))
_MADE: Mapping[str, Callable[[int], Case]] = {
    "plans": make_case,
    "mixed": make_mixed_case,
    "moving": make_moving_case,
    "matching": make_matching_case,
}
_ROW = re.compile(r"^\| `(SELECT .*)` \| (.*) \|$", re.MULTILINE)
_EXAMPLES: Mapping[str, str] = dict(_ROW.findall(sections()["Memory"]))
_ENDLESS = "for ever"


@pytest.mark.parametrize("text", _EXAMPLES)
def test_a_plan_has_the_memory_of_the_specification(text: str) -> None:
    memory = memory_ms(parse_sql(text, SpecMarket()).root)
    assert (_ENDLESS if memory is None else f"{memory / 1_000:g} s") == _EXAMPLES[text]


@pytest.mark.parametrize("kind", _MADE)
def test_no_result_depends_on_a_tuple_that_is_older_than_the_memory(kind: str) -> None:
    met: Counter[str] = Counter()
    for seed in _SEEDS:
        case = _MADE[kind](seed)
        checked = analyse(case.plan)
        memory = memory_ms(checked.root)
        if memory is None or checked.event_time is None:
            continue
        tables = tables_of(case, case.records)
        times = sorted({time for _, time in _timed(case, tables) if time is not None})
        for since in Random(seed).sample(times, min(3, len(times))):
            later = _later(case, tables, since)
            until = since + timedelta(milliseconds=memory)
            whole, part = (_behind(case, checked, given, until) for given in (tables, later))
            assert whole == part, f"{case.name}: tuples up to {since}"
            met["cases"] += 1
            met["results"] += bool(whole)
            met["dropped"] += bool(whole) and later != tables
    assert met["dropped"] > len(_SEEDS) // 20, met


def _timed(
    case: Case, tables: Mapping[str, Sequence[Tuple]]
) -> Iterator[tuple[Tuple, datetime | None]]:
    for relation in sources(case.plan):
        for each in tables[relation.name]:
            yield each, _time(relation, each)


def _time(relation: Relation, each: Tuple) -> datetime | None:
    if relation.event_time is None:
        return None
    found = each.values[relation.schema.names.index(relation.event_time)]
    assert found is None or isinstance(found, datetime)
    return found


def _later(
    case: Case, tables: Mapping[str, Sequence[Tuple]], since: datetime
) -> dict[str, list[Tuple]]:
    """The tuples without those whose event time is that or earlier."""
    return {
        relation.name: [
            each
            for each in tables[relation.name]
            if (time := _time(relation, each)) is not None and time > since
        ]
        for relation in sources(case.plan)
    }


def _behind(
    case: Case, checked: CheckedPlan, tables: Mapping[str, Sequence[Tuple]], until: datetime
) -> Counter[str]:
    """The results with a later event time."""
    place = checked.schema.names.index(checked.event_time or "")
    found: Counter[str] = Counter()
    for each in run(case.plan.root, tables, case.reach_of):
        time = each.values[place]
        if isinstance(time, datetime) and time > until:
            # 0.0 and -0.0 are one key of a group, so either may stand for it.
            shown = [
                0.0 if value == 0 and isinstance(value, float) else value for value in each.values
            ]
            found[f"{shown!r} {each.label}"] += 1
    return found


WINDOWS = "SELECT window_end, count(*) AS n FROM trades GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)"


def by_ticks(text: str, kind: RelationKind = RelationKind.STREAM) -> CheckedPlan:
    """The query over sources whose time ticks move."""

    def ticked(source: Source) -> Source:
        relation = replace(source.relation, time=TimeSource.BROKER, kind=kind)
        return replace(source, relation=relation)

    return analyse(at_sources(parse_sql(text, Market()).plan, ticked))


def test_only_state_that_depends_on_the_tuples_alone_is_shared() -> None:
    assert shared_memory_ms(by_ticks(WINDOWS)) == 60_000
    assert shared_memory_ms(parse_sql(WINDOWS, Market())) is None, "its data moves its time"
    assert shared_memory_ms(by_ticks(WINDOWS, RelationKind.OUTPUT)) is None
    for text in (
        f"{WINDOWS} EMIT UPDATES",
        WINDOWS.replace("window_end, ", ""),
        WINDOWS.replace("TUMBLE", "SESSION"),
        "SELECT symbol, count(*) AS n FROM trades GROUP BY symbol",
        "SELECT symbol FROM trades [ROWS 5]",
        "SELECT ts FROM trades",
    ):
        assert shared_memory_ms(by_ticks(text)) is None, text


def test_a_plan_with_such_state_has_a_key_where_all_classes_share_the_results() -> None:
    plan = by_ticks(WINDOWS)
    other = by_ticks(WINDOWS.replace("trades", "trades AS t"))
    assert sharing_key(plan, None) == sharing_key(other, None) != ""
    for placement in Placement:
        assert (sharing_key(plan, None, placement) == "") is (placement is not Placement.SINK)
