"""Queries over role expressions against the three stages of paper 000, with sets of roles.

`strong` is the cumulative approach, `view` has windows that are partitioned by the roles of a user,
and `exact` is exact match: a partition for each role.
The oracle of plans says what a query gives: each record has a label of its own there, so the label
of a result names its records. ROLE_SET_CASES sets how many random queries there are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

import pytest
from pyspark.sql import SparkSession

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Filter, Join, Plan, Project, Source, Union, walk
from catalog.relation import Relation, RelationKind
from catalog.role_clauses import RoleClauses
from catalog.role_expression import RoleExpression, read_role_expression
from catalog.schema import Attribute, Schema, Type
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Outcome, Record
from tests.differential.conftest import interpreting
from tests.differential.engine import run_cases
from tests.differential.market import NOON
from tests.differential.named_streams import NamedStreams
from tests.lanes import number_of
from tests.oracle import role_sets
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value

NUMBER = number_of("ROLE_SET_CASES", sample=4, long=500)
SEED = number_of("ROLE_SET_SEED", sample=1, long=1)
ROLES = ("doctor", "nurse", "icu")
USERS: Sequence[frozenset[str]] = [
    frozenset(role for at, role in enumerate(ROLES) if bits >> at & 1) for bits in range(8)
]
# Each expression as its owner writes it, and as alternatives.
POLICIES: dict[str, role_sets.Allowed] = {
    text: frozenset(frozenset(alternative.split()) for alternative in alternatives)
    for text, alternatives in {
        "doctor": ["doctor"],
        "nurse": ["nurse"],
        "doctor | nurse": ["doctor", "nurse"],
        "doctor & icu": ["doctor icu"],
        "(doctor & icu) | nurse": ["doctor icu", "nurse"],
        "icu & (doctor | nurse)": ["doctor icu", "nurse icu"],
    }.items()
}


def _stream(number: int, name: str, **types: Type) -> Relation:
    schema = Schema(tuple(Attribute(each, kind) for each, kind in types.items()))
    return Relation(number, name, RelationKind.STREAM, schema, "ts", 0)


HEART = _stream(31, "HRStr", ts=Type.TIMESTAMP, patID=Type.BIGINT, pulseRate=Type.BIGINT)
PRESSURE = _stream(32, "BPStr", ts=Type.TIMESTAMP, patID=Type.BIGINT, systolic=Type.BIGINT)
STREAMS = {each.name: each for each in (HEART, PRESSURE)}
SOURCE = {HEART.object_id: 0, PRESSURE.object_id: 70}
OF_ROLE = {role: 10 + at for at, role in enumerate(ROLES)}
# The clauses of all expressions, each with a category of its own, on both sides of a word's end.
EVERY = sorted(
    {each for text in POLICIES for each in read_role_expression(text).clauses}, key=sorted
)
OF_CLAUSE = {each: 62 + at for at, each in enumerate(EVERY)}
CLAUSES = RoleClauses(
    {at: Label.of(*(OF_ROLE[role] for role in each)) for each, at in OF_CLAUSE.items()}
)
# CQ1 of the paper, and its join over windows of one tuple (§5.2.1).
PAPER = {
    "CQ1": "SELECT ISTREAM HRStr.patID, AVG(pulseRate) AS pulse, AVG(systolic) AS systolic "
    "FROM HRStr [RANGE 2 MINUTES], BPStr [RANGE 2 MINUTES] WHERE HRStr.patID = BPStr.patID "
    "GROUP BY HRStr.patID",
    "join": "SELECT ISTREAM h.pulseRate, b.systolic FROM HRStr [ROWS 1] AS h, BPStr [ROWS 1] AS b "
    "WHERE h.patID = b.patID",
    "pairs": "SELECT h.pulseRate, b.systolic FROM HRStr AS h JOIN BPStr AS b ON h.patID = b.patID "
    "AND b.ts BETWEEN h.ts - INTERVAL '2' MINUTE AND h.ts + INTERVAL '2' MINUTE",
}
Given = dict[str, list[tuple[tuple[Value, ...], str]]]


@dataclass(frozen=True, slots=True)
class Told:
    """A query with its records, and the policy of each."""

    text: str
    given: Given

    @property
    def plan(self) -> Plan:
        return parse_sql(self.text, NamedStreams(STREAMS)).plan


def records(chance: random.Random, count: int) -> Given:
    made: Given = {}
    for name in STREAMS:
        made[name] = [
            (
                (
                    NOON + timedelta(seconds=chance.randint(0, 40) * 10, milliseconds=each),
                    chance.randint(1, 2),
                    chance.randint(60, 99),
                ),
                chance.choice([*POLICIES]),
            )
            for each in range(count)
        ]
    return made


def query(chance: random.Random) -> str:
    one, two = (
        chance.choice(["ROWS 1", "ROWS 3", "RANGE 1 MINUTE", "NOW", "UNBOUNDED"]) for _ in range(2)
    )
    where = chance.choice(["", " WHERE pulseRate > 75"])
    return chance.choice(
        [
            (
                f"SELECT ISTREAM h.pulseRate, b.systolic FROM HRStr [{one}] AS h, "
                f"BPStr [{two}] AS b WHERE h.patID = b.patID"
            ),
            f"SELECT ISTREAM patID, COUNT(*) AS n FROM HRStr [{one}]{where} GROUP BY patID",
            f"SELECT RSTREAM SUM(pulseRate) AS total FROM HRStr [{one}]{where}",
            f"SELECT DSTREAM patID, pulseRate FROM HRStr [{one}]{where}",
            f"SELECT patID, pulseRate FROM HRStr{where}",
            (
                "SELECT window_start, patID, MAX(pulseRate) AS highest FROM HRStr"
                f"{where} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), patID"
            ),
            (
                "SELECT h.pulseRate, b.systolic FROM HRStr AS h JOIN BPStr AS b "
                "ON h.patID = b.patID AND b.ts BETWEEN h.ts - INTERVAL '30' SECOND "
                "AND h.ts + INTERVAL '30' SECOND"
            ),
        ]
    )


def all_told() -> dict[str, Told]:
    chance = random.Random(SEED)
    told = {name: Told(text, records(chance, 12)) for name, text in PAPER.items()}
    for number in range(NUMBER):
        told[f"{SEED}-{number}"] = Told(query(chance), records(chance, chance.randint(3, 9)))
    return told


TOLD = all_told()


def label_of(relation: Relation, policy: str) -> Label:
    held = (OF_CLAUSE[each] for each in read_role_expression(policy).clauses)
    return Label.of(SOURCE[relation.object_id], *held)


def cleared(*active: str) -> Clearance:
    """The clearance of these roles together."""
    return CLAUSES.cleared(Clearance.of(*SOURCE.values(), *(OF_ROLE[role] for role in active)))


def class_of(active: Set[str], semantics: str) -> Class:
    """The class of a user with these roles. By a role alone, who has none sees nothing."""
    if semantics != "exact":
        return Class(cleared(*active))
    if not active:
        return Class(Clearance())
    return Class(cleared(*active), ways=tuple(cleared(role) for role in sorted(active)))


def case_of(name: str, told: Told, semantics: str) -> Case:
    """The query on the platform: each clause is a category, and a user has those of its roles."""
    classes = tuple(class_of(active, semantics) for active in USERS)
    wired = {
        of: [Record(values, label_of(STREAMS[of], policy).to_wire()) for values, policy in several]
        for of, several in told.given.items()
    }
    reaches = {
        each.object_id: Label.of(SOURCE[each.object_id], *OF_CLAUSE.values())
        for each in STREAMS.values()
    }
    view = semantics == "view"
    return Case(f"{name}, {semantics}", told.plan, wired, reaches, classes, view=view)


Found = Counter[tuple[Value, ...]]
Placed = tuple[str, tuple[Value, ...]]


STAGES = {
    "strong": role_sets.cumulative_approach,
    "view": role_sets.partitioned,
    "exact": role_sets.exact_match,
}


def of_single_tuples(told: Told) -> bool:
    """Whether no result depends on other tuples than its own: only then there is `exact`."""
    return all(
        isinstance(node, Source | Filter | Project | Union | Join) for node in walk(told.plan.root)
    )


EACH = [
    (name, semantics)
    for name, told in TOLD.items()
    for semantics in STAGES
    if semantics != "exact" or of_single_tuples(told)
]


def by_the_paper(told: Told, active: Set[str], semantics: str) -> Found:
    """What a user with these roles gets."""
    elements: list[tuple[Placed, role_sets.Allowed]] = [
        ((of, values), POLICIES[policy])
        for of, several in told.given.items()
        for values, policy in several
    ]

    def results(routed: Sequence[tuple[int, Placed]]) -> Sequence[tuple[Placed, Set[int]]]:
        tables: dict[str, list[Tuple]] = {name: [] for name in STREAMS}
        for number, (of, values) in routed:
            tables[of].append(Tuple(values, Label.of(number)))
        everything = Label.of(*range(len(elements)))
        found = run(told.plan.root, tables, lambda _: everything)
        return [(("", each.values), {*(each.label or Label()).categories()}) for each in found]

    return Counter(values for _, values in STAGES[semantics](elements, results, active))


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[tuple[str, str], Outcome]:
    """What all queries give with each semantics, from few jobs."""
    cases = [case_of(name, TOLD[name], semantics) for name, semantics in EACH]
    found: list[Outcome] = []
    with interpreting(spark):
        for start in range(0, len(cases), 50):
            found += run_cases(spark, cases[start : start + 50])
    return dict(zip(EACH, found, strict=True))


@pytest.mark.parametrize(("name", "semantics"), EACH)
def test_each_user_gets_what_the_paper_says(
    outcomes: dict[tuple[str, str], Outcome], name: str, semantics: str
) -> None:
    delivered = outcomes[name, semantics].delivered
    for active, got in zip(USERS, delivered, strict=True):
        wanted = by_the_paper(TOLD[name], active, semantics)
        assert Counter(_rounded(each.values) for each in got) == Counter(
            _rounded(each) for each in wanted.elements()
        ), (active, TOLD[name])


def _rounded(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in values)


def test_the_cases_tell_the_semantics_apart() -> None:
    differing = {
        other: {
            name
            for name, semantics in EACH
            if semantics == other
            and any(
                by_the_paper(TOLD[name], active, "strong")
                != by_the_paper(TOLD[name], active, other)
                for active in USERS
            )
        }
        for other in ("view", "exact")
    }
    assert len(differing["view"]) > len(TOLD) // 4
    assert "pairs" in differing["exact"]


def test_permissions_of_figure_8() -> None:
    """Sets of alternatives and the platform's conjunctive form mean the same, also combined."""
    for one, two in [(one, two) for one in POLICIES for two in POLICIES]:
        sets = role_sets.cumulative([POLICIES[one], POLICIES[two]])
        both = read_role_expression(one) & read_role_expression(two)
        assert isinstance(both, RoleExpression)
        for active in USERS:
            assert role_sets.satisfies(active, sets) == both.allows(active)
        assert {*chain(*sets)} == {*both.roles}, "no role is left that decides nothing"


def test_exact_match_pairs_no_tuples_of_two_roles() -> None:
    """The example of §5.2.1: windows of one tuple, and which pairs each approach makes."""
    second = timedelta(seconds=30)
    heart = [((NOON, 1, 85), "R1"), ((NOON + second, 1, 84), "R2")]
    pressure = [((NOON + second * at, 1, 130 + at), of) for at, of in enumerate(("R2", "R1", "R2"))]
    elements: list[tuple[tuple[Value, ...], role_sets.Allowed]] = []
    for of, several in (("h", heart), ("b", pressure)):
        elements += [((of, *values), frozenset({frozenset({role})})) for values, role in several]
    everything = Label.of(*range(len(elements)))

    def pairs(
        routed: Sequence[tuple[int, tuple[Value, ...]]],
    ) -> Sequence[tuple[tuple[Value, ...], Set[int]]]:
        plan = parse_sql(PAPER["join"], NamedStreams(STREAMS)).plan
        tables: dict[str, list[Tuple]] = {name: [] for name in STREAMS}
        for number, (of, *values) in routed:
            name = HEART.name if of == "h" else PRESSURE.name
            tables[name].append(Tuple(tuple(values), Label.of(number)))
        found = run(plan.root, tables, lambda _: everything)
        return [(each.values[1:], {*(each.label or Label()).categories()}) for each in found]

    both = {"R1", "R2"}
    exact = role_sets.exact_match(elements, pairs, both)
    assert sorted(exact, key=str) == [(84, 130), (84, 132), (85, 131)]
    # A view of both roles has one window for both, so it pairs across them, as the cumulative
    # approach does.
    seen = role_sets.partitioned(elements, pairs, both)
    assert (85, 130) in seen and (84, 131) in seen
    assert sorted(seen, key=str) == sorted(
        role_sets.cumulative_approach(elements, pairs, both), key=str
    )
    for role in both:
        alone = role_sets.partitioned(elements, pairs, {role})
        assert sorted(alone, key=str) == sorted(
            role_sets.exact_match(elements, pairs, {role}), key=str
        )
