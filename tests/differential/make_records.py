"""Random relations and the records that are in their topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from catalog.label import Label
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import Attribute, Schema, Type, held_as
from tests.differential.case import Record
from tests.oracle.values import EPOCH, Value

# Both ends of words, of a sign bit, and a word between that nobody reaches.
CATEGORIES = (0, 1, 2, 62, 63, 64, 65, 127, 128, 200)
# What declared aggregates give for one of them.
AGGREGATED = (3, 66, 129)
# Senders 1 to 6: some count, and two of these are one user's.
_INDEPENDENT = {1: 0, 2: 63, 3: 63, 4: 31, 5: 62}
_SENDERS = (1, 2, 3, 4, 5, 1, 2, 4, 5, 6, None)
_NAMES = ("a", "A", "b", "key", "value", "e1", "order")
STARTS = (EPOCH, EPOCH - timedelta(days=1), datetime(2026, 1, 31, 11, 59))  # noqa: DTZ001
_FORGED = ("", "x", "1,,1", "1 ", "+1", "0x1", "1.0", "99999999999999999999", "-", "NULL")


@dataclass(frozen=True, slots=True)
class Records:
    """Makes relations and their records; `pool` holds the values of each type.

    All times are within two minutes after `start`, so that joins find partners.
    """

    random: Random
    pool: Mapping[Type, Sequence[Value]]
    start: datetime
    # What the tuples of each relation can carry, by its id.
    reaches: dict[int, Label] = field(default_factory=dict)
    # The independent senders of each relation, by its id.
    independent: dict[int, Mapping[int, int]] = field(default_factory=dict)

    def relation(self, name: str) -> Relation:
        """A stream or output with an event time `ts`, or rarely without."""
        kinds = [self.random.choice(list(Type)) for _ in range(self.random.randint(1, 4))]
        names = self.random.sample(_NAMES, len(kinds))
        times = self.random.random() < 0.95
        plain = [Attribute(n, k) for n, k in zip(names, kinds, strict=True)]
        schema = Schema((*([Attribute("ts", Type.TIMESTAMP)] if times else []), *plain))
        public = self.random.random() < 0.1
        kind = self.random.choice(list(RelationKind))
        reach = Label.of(*self.random.sample(CATEGORIES, self.random.randint(1, 4)))
        if public and kind is RelationKind.STREAM:
            reach = Label()
        number = 1_000 * len(self.reaches) + self.random.randint(1, 1000)
        self.reaches[number] = reach
        self.independent[number] = _INDEPENDENT if self.random.random() < 0.9 else {}
        return Relation(
            object_id=number,
            name=name,
            kind=kind,
            schema=schema,
            event_time="ts" if times else None,
            lateness_ms=self.random.choice([0, 1000]),
            public=public,
            declared=self._declared(schema, reach),
        )

    def _declared(self, schema: Schema, reach: Label) -> DeclaredAggregate | None:
        if not reach.bits or self.random.random() < 0.2:
            return None
        keys = self.random.sample(schema.names, self.random.randint(0, 1))
        return DeclaredAggregate(
            window_ms=self.random.choice([10_000, 60_000]),
            keys=tuple(key for key in keys if key != "ts"),
            functions=("count", "sum", "avg", "stddev"),
            minimum=self.random.choice([1, 1, 2, 3]),
            source=self.random.choice(reach.categories()),
            aggregated=self.random.choice(AGGREGATED),
        )

    def records(self, relation: Relation) -> list[Record]:
        """Up to twenty records, some with labels that make them invisible."""
        count = self.random.choice([0, 3, 12, 12, 20, 20, 20])
        return [self._record(relation) for _ in range(count)]

    def _record(self, relation: Relation) -> Record:
        # Few values, so that groups have members and keys meet.
        values = [self._value(a, relation) for a in relation.schema.attributes]
        label, sender = self._label(self.reaches[relation.object_id]), self.random.choice(_SENDERS)
        return Record(tuple(values), label, sender)

    def _value(self, attribute: Attribute, relation: Relation) -> Value:
        if self.random.random() < 0.1:
            return None
        if attribute.name == relation.event_time:
            offset = self.random.choice([1000, 500, 1]) * self.random.randrange(120)
            return self.start + timedelta(
                milliseconds=offset, microseconds=self.random.choice([0, 0, 7])
            )
        pool = self.pool[held_as(attribute.type)]
        return self.random.choice(pool[:3] if self.random.random() < 0.7 else pool)

    def _label(self, reach: Label) -> str | None:
        chance = self.random.random()
        if chance < 0.03:
            return None
        if chance < 0.06:
            return self.random.choice(_FORGED)
        if chance < 0.09:
            return Label.of(*self.random.sample(CATEGORIES, 2)).to_wire()
        if chance < 0.12 or not reach.bits:
            return Label().to_wire()
        held = reach.categories()
        return Label.of(*self.random.sample(held, self.random.randint(1, len(held)))).to_wire()
