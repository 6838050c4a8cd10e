"""A random case from a seed."""

from __future__ import annotations

from random import Random

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Aggregate, Plan, sources, walk
from catalog.plan_check import check_plan, output_schema
from tests.differential.case import Case, Class
from tests.differential.make_expression import EXTREME, MODERATE, Expressions
from tests.differential.make_plan import Plans
from tests.differential.make_records import CATEGORIES, Records

_AGGREGATED = (3, 66, 129)


def make_case(seed: int) -> Case:
    """The case of that seed: always the same one."""
    random = Random(seed)
    stateful = random.random() < 0.7
    pool = MODERATE if stateful else EXTREME
    plans = Plans(random, Expressions(random, pool), Records(random, pool), f"s{seed}")
    plan = plans.make(random.randint(1, 6), stateful)
    if any("." in name for name in output_schema(plan).names):
        plan = plans.project(plan)
    check_plan(plan)
    records = {each.name: plans.records.records(each) for each in sources(plan)}
    classes = tuple(_class(random) for _ in range(4))
    kinds = Label.of(*random.sample(CATEGORIES, 5))
    return Case(f"seed {seed}", plan, records, classes, kinds)


def _class(random: Random) -> Class:
    every = (*CATEGORIES, *_AGGREGATED)
    held = random.sample(every, random.randint(0, len(every)))
    return Class(Clearance.of(*held), weak=random.random() < 0.4)


def describe(plan: Plan) -> str:
    """The kinds of the plan's nodes, inputs first."""
    return " ".join(type(node).__name__ for node in walk(plan))


def has_window(case: Case) -> bool:
    """Whether the case aggregates."""
    return any(isinstance(node, Aggregate) for node in walk(case.plan))
