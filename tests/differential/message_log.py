"""The story of paper 001: its message log, two conflict classes, and records of all levels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

from catalog.conflict_class import ConflictClass
from catalog.errors import NotFound
from catalog.label import Label, combine
from catalog.record_format import TimeFormat
from catalog.relation import Relation, RelationKind
from catalog.role_clauses import RoleClauses
from catalog.schema import Attribute, Schema, Type
from tests.oracle import levels as vectors
from tests.oracle.values import Value

_S, _T = Type.STRING, Type.TIMESTAMP
COI1 = ConflictClass(1, "COI1", 3, {"1": 4, "2": 70})
COI2 = ConflictClass(2, "COI2", 5, {"A": 6, "B": 64, "C": 9})
CLASSES = (COI1, COI2)
SOURCE = Label.of(130)
CLAUSES = RoleClauses(
    {at: Label.of(each.trusted, at) for each in CLASSES for at in each.categories.categories()}
)
COMPANIES = combine(each.categories for each in CLASSES)
_LOG = {"serviceId": _S, "msgType": _S, "sender": _S, "receiver": _S, "timestamp": _T}
LOG = Relation(
    *(21, "MessageLog", RelationKind.STREAM),
    Schema(tuple(Attribute(name, kind) for name, kind in {**_LOG, "outcome": _S}.items())),
    *("timestamp", 0),
    conflict_classes=(1, 2),
)
NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001


class Log:
    """The one stream of the paper."""

    def relation(self, name: str) -> Relation:
        if name != LOG.name:
            raise NotFound(name)
        return LOG

    def time_format(self, name: str) -> TimeFormat:
        return TimeFormat.ISO


def levels(*parts: Sequence[str]) -> list[vectors.Level]:
    return [(one, two) for one in parts[0] for two in parts[1]]


LEVELS = levels(["1", "2", vectors.T, vectors.BOTTOM], ["A", "B", "C", vectors.T, vectors.BOTTOM])


def records(
    chance: random.Random, count: int, among: Sequence[vectors.Level] = LEVELS
) -> list[tuple[tuple[Value, ...], vectors.Level]]:
    made: list[tuple[tuple[Value, ...], vectors.Level]] = []
    for second in range(count):
        values = (
            *(chance.choice("56"), chance.choice(["send", "receive"])),
            *(chance.choice("1B"), chance.choice("BB1A")),
            *(NOON + timedelta(seconds=second), chance.choice(["success", "success", "failure"])),
        )
        made.append((values, chance.choice(among)))
    return made
