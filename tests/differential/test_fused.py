"""A fused run gives exactly the records that its members give alone: keys, values, headers, topics.

FUSED_GROUPS sets how many groups of random plans (1, and 60 in the long lane), FUSED_MEMBERS how
many plans each has (4, and 40), FUSED_SEED the first one's seed (0).
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from unittest.mock import patch

import pytest
from pyspark.sql import Column, DataFrame, Observation, SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.plan import Plan, Source, Union, sources
from catalog.relation import Relation
from catalog.runs import FanOutClass, FedOutput, FusedRun, QueryRun, fused
from secfilter import fanout, fused_fanout
from secfilter.beginnings import begun, late_outputs
from secfilter.columns import BEGUN, ECHO
from secfilter.compiler import compile_plan
from secfilter.fanout import DEFAULT_MAX_BYTES, fan_out
from secfilter.fused_fanout import count_of, fan_out_fused
from secfilter.fused_plan import fused_plan
from secfilter.lab import read_lab
from secfilter.output_ticker import echo_column
from tests.differential.case import Case
from tests.differential.engine import stored
from tests.differential.make_case import make_class, make_difference
from tests.differential.make_expression import EXTREME, Expressions
from tests.differential.make_plan import Plans
from tests.differential.make_records import CATEGORIES, STARTS, Records
from tests.lanes import number_of

_GROUPS = number_of("FUSED_GROUPS", sample=1, long=60)
_MEMBERS = number_of("FUSED_MEMBERS", sample=4, long=40)
_FIRST = int(os.environ.get("FUSED_SEED", "0"))
_TICK_MS = 1_000
Delivered = Counter[tuple[object, ...]]


@dataclass(frozen=True)
class Together:
    """A fused run, and the records of the relation that it reads."""

    run: FusedRun
    case: Case


def make_together(seed: int) -> Together:
    """The fused run of that seed: always the same one."""
    random = Random(seed)
    records = Records(random, EXTREME, random.choice(STARTS))
    plans = Plans(random, Expressions(random, EXTREME), records, f"f{seed}")
    source = Source(replace(records.relation(f"f{seed}"), declared=None))
    given = [each for _ in range(3) for each in records.records(source.relation)]
    reach = records.reaches[source.relation.object_id]
    floor = Label.of(random.choice(CATEGORIES)) if random.random() < 0.3 else Label()
    members: list[QueryRun] = []
    while len(members) < _MEMBERS:
        plan = Plan(plans.make_chain(source, random.randint(0, 4)))
        if fused_plan(plan) is not None:
            members.append(_member(random, len(members), plan, reach, floor))
    run = fused("fused", members)
    case = Case(f"seed {seed}", run.plan, {source.relation.name: given}, records.reaches)
    return Together(run, case)


def _member(random: Random, number: int, plan: Plan, reach: Label, floor: Label) -> QueryRun:
    outputs = tuple(
        _output(random, f"{number}_{each}", plan) for each in range(random.randint(1, 2))
    )
    (read,) = sources(plan)
    kinds, reaches = Label.of(*CATEGORIES[:5]), {read.object_id: reach}
    return QueryRun(*(f"query-{number}", plan, outputs, kinds, {}), reaches=reaches, floor=floor)


def _output(random: Random, name: str, plan: Plan) -> FedOutput:
    """An output with some classes of all kinds. It begins at an offset among those of the case."""
    wholes = [make_class(random) for _ in range(random.randint(0, 3))]
    made = wholes + [make_difference(each, wholes[0]) for each in wholes[1:]]
    classes = tuple(
        FanOutClass(f"{name}.{n}", each.clearance, each.weak, each.beyond, n + 1, each.ways)
        for n, each in enumerate(made)
    )
    classes += (FanOutClass(f"{name}.all", Clearance.of(*CATEGORIES)),)
    relation = output_relation(random.randint(1, 10**6), f"o{name}", analyse(plan))
    begins = {"lab": {"0": random.choice([0, 0, 5, 12])}}
    return FedOutput(relation, classes, random.random() < 0.5, begins)


def rows(
    spark: SparkSession,
    together: Together,
    run: QueryRun,
    max_bytes: int = DEFAULT_MAX_BYTES,
    *,
    echoes: bool = False,
) -> Delivered:
    """What Kafka's sink would be given of the run."""
    kept = stored(spark, [together.case], _TICK_MS if echoes else None)
    late = late_outputs(run, {"lab": {"0": 0}})

    def source(relation: Relation) -> DataFrame:
        beside: dict[str, Column] = {BEGUN: begun(late, "lab")} if late else {}
        if echoes:
            beside[ECHO] = echo_column("life", 0)
        return read_lab(kept, relation, run.reach_of(relation), beside=beside)

    names = [*([BEGUN] if late else []), *([ECHO] if echoes else [])]
    compiled = compile_plan(
        *(analyse(run.plan), source, run.reach_of), floor=run.floor, beside=names
    )
    make = fan_out_fused if isinstance(run, FusedRun) else fan_out
    out = make(compiled, run, "key", max_bytes, late, echoes=echoes)  # type: ignore[arg-type]
    found: Delivered = Counter()
    for row in out.coalesce(1).collect():
        marks = tuple((each["key"], bytes(each["value"])) for each in row["headers"] or ())
        found[row["topic"], row["key"], row["value"], marks] += 1
    kept.unpersist()
    return found


def alone(spark: SparkSession, together: Together, max_bytes: int = DEFAULT_MAX_BYTES) -> Delivered:
    """What the members give, each by itself."""
    found: Delivered = Counter()
    for each in together.run.members:
        found += rows(spark, together, each, max_bytes)
    return found


def check(spark: SparkSession, seed: int, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
    together = make_together(seed)
    wanted = alone(spark, together, max_bytes)
    found = rows(spark, together, together.run, max_bytes)
    assert found == wanted, f"seed {seed}: {found - wanted} too much, {wanted - found} missing"
    topics = {topic for topic, *_ in found}
    if max_bytes == DEFAULT_MAX_BYTES and together.case.records:
        assert topics, f"seed {seed} gives nothing"


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _GROUPS))
def test_a_fused_run_gives_what_its_members_give_alone(
    interpreted: SparkSession, seed: int
) -> None:
    check(interpreted, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + 3))
def test_the_same_with_generated_code(spark: SparkSession, seed: int) -> None:
    check(spark, seed)


@pytest.mark.long
def test_a_result_that_is_too_large_reaches_nobody_and_counts_for_its_member(
    interpreted: SparkSession,
) -> None:
    small = 30
    together = make_together(_FIRST)
    wanted: dict[str, int] = {}
    for each in together.run.members:
        with patch.object(fanout, "TOO_LARGE", counted := Observation()):
            rows(interpreted, together, each, small)
        wanted[count_of(each.name)] = counted.get["withheld"]
    with patch.object(fused_fanout, "FUSED_LARGE", counted := Observation()):
        found = rows(interpreted, together, together.run, small)
    assert counted.get == wanted and max(wanted.values()) > 0
    assert found == alone(interpreted, together, small)


def test_ticks_are_echoed_once_and_are_no_results(interpreted: SparkSession) -> None:
    together = make_together(_FIRST)
    plain = rows(interpreted, together, together.run)
    ticked = rows(interpreted, together, together.run, echoes=True)
    (echo,) = (ticked - plain).items()
    offset = len(together.case.records[next(iter(together.case.records))])
    assert echo == (("time.results", None, f"life:0:0:{offset}:{_TICK_MS}", ()), 1)
    assert not plain - ticked


def test_a_plan_that_must_run_alone_is_refused(interpreted: SparkSession) -> None:
    together = make_together(_FIRST)
    source = together.run.plan.root
    (member, *_) = together.run.members

    twice = replace(member, plan=Plan(Union((source, source))))
    with pytest.raises(ValueError, match="is not one that others run with"):
        rows(interpreted, together, replace(together.run, members=(twice,)))
