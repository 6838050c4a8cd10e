"""The story of paper 000: patients with policies, and what a user gets by the three stages.

The oracle of plans says what a query gives: each record has a label of its own there, so the label
of a result names its records.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.plan import Plan
from catalog.relation import Relation, RelationKind
from catalog.role_clauses import RoleClauses
from catalog.role_expression import read_role_expression
from catalog.schema import Attribute, Schema, Type
from secadmin.languages import parse_sql
from tests.differential.case import Case, Class, Record
from tests.differential.market import NOON
from tests.differential.named_streams import NamedStreams
from tests.oracle import role_sets
from tests.oracle.plans import run
from tests.oracle.values import Tuple, Value

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
    return Case(
        *(f"{name}, {semantics}", told.plan, wired, reaches, classes),
        view=semantics == "view",
        exact=semantics == "exact",
    )


Found = Counter[tuple[Value, ...]]
Placed = tuple[str, tuple[Value, ...]]


def of_one_size(told: Told, size: int, active: Set[str]) -> Found:
    """What RSTREAM sends a user of heart rates in a window with one size for all tuples."""
    arrived = sorted(told.given[HEART.name])
    elements = [(values, POLICIES[policy]) for values, policy in arrived]
    held = role_sets.of_one_size(elements, size, active)
    return Counter(
        (instant, *values)
        for ((instant, *_), _), several in zip(arrived, held, strict=True)
        for _, *values in several
    )


STAGES = {
    "strong": role_sets.cumulative_approach,
    "view": role_sets.partitioned,
    "exact": role_sets.exact_match,
}


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
        # In a partition of its own, nobody learns of tuples that are not in it.
        alone = semantics != "strong"
        found = run(told.plan.root, tables, lambda _: everything, alone=alone)
        return [(("", each.values), {*(each.label or Label()).categories()}) for each in found]

    return Counter(values for _, values in STAGES[semantics](elements, results, active))
