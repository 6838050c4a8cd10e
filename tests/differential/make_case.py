"""A random case from a seed."""

from __future__ import annotations

from random import Random

from catalog.analysis import analyse, analyse_node
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Node, Plan, sources
from tests.differential.case import Case, Class
from tests.differential.make_expression import EXTREME, MODERATE, Expressions
from tests.differential.make_moving import with_upserts
from tests.differential.make_plan import Plans
from tests.differential.make_records import AGGREGATED, CATEGORIES, STARTS, Records

# How many cases the sample lane runs: the seeds from 0 on.
SAMPLE = 52
SAMPLE_MIXED = 12
SAMPLE_MOVING = 25
SAMPLE_MATCHING = 15


def make_case(seed: int) -> Case:
    """The case of that seed: always the same one."""
    random = Random(seed)
    stateful = random.random() < 0.7
    pool = MODERATE if stateful else EXTREME
    records = Records(random, pool, random.choice(STARTS))
    plans = Plans(random, Expressions(random, pool), records, f"s{seed}")
    return _case(seed, random, records, plans, plans.make(random.randint(1, 6), stateful))


def make_mixed_case(seed: int) -> Case:
    """The case of that seed with windows and joins over each other: always the same one."""
    random = Random(seed)
    records = Records(random, MODERATE, random.choice(STARTS))
    plans = Plans(random, Expressions(random, MODERATE), records, f"x{seed}")
    return _case(seed, random, records, plans, plans.make_mixed(random.randint(4, 6)))


def make_moving_case(seed: int) -> Case:
    """The case of that seed with a moving window: always the same one."""
    random = Random(seed)
    records = Records(random, MODERATE, random.choice(STARTS))
    plans = Plans(random, Expressions(random, MODERATE), records, f"m{seed}")
    root = with_upserts(random, plans.make_moving(random.randint(1, 5)))
    return _case(seed, random, records, plans, root)


def make_matching_case(seed: int) -> Case:
    """The case of that seed with an event pattern: always the same one."""
    random = Random(seed)
    records = Records(random, MODERATE, random.choice(STARTS))
    plans = Plans(random, Expressions(random, MODERATE), records, f"e{seed}")
    return _case(seed, random, records, plans, plans.make_matching(random.randint(1, 3)))


def _case(seed: int, random: Random, records: Records, plans: Plans, root: Node) -> Case:
    if any("." in name for name in analyse_node(root).schema.names):
        root = plans.project(root)
    plan = Plan(root)
    analyse(plan)
    given = {each.name: records.records(each) for each in sources(plan)}
    classes = tuple(make_class(random) for _ in range(4))
    classes += tuple(make_difference(each, classes[0]) for each in classes[1:3])
    kinds = Label.of(*random.sample(CATEGORIES, 5))
    counting = records.independent
    return Case(f"seed {seed}", plan, given, records.reaches, classes, kinds, counting)


def make_class(random: Random) -> Class:
    """A class that holds some of the categories."""
    every = (*CATEGORIES, *AGGREGATED)
    held = random.sample(every, random.randint(0, len(every)))
    return Class(Clearance.of(*held), weak=random.random() < 0.4)


def make_difference(whole: Class, other: Class) -> Class:
    """What a subscriber of `other` lacks who may see all of both."""
    both = Clearance(whole.clearance.bits | other.clearance.bits)
    return Class(both, other.weak, beyond=other.clearance)
