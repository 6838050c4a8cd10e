"""What the attribute operators of a role cost an event (003 §V), beside the same query without.

The paper's three experiments: the number of detecting trees (types of events), the number of
attributes, and the operators. Its rates, 1,000 to 10,000 events a second, follow from the cost of
an event, because an event costs the same at each rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from catalog.relation import Relation, RelationKind
from catalog.role_view import AttributeRight, RoleView
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from secadmin.languages import parse_condition
from secfilter.session import build_session
from tests.bench.events import RATE, TYPES
from tests.bench.figure import Figure, middle
from tests.bench.patterns import extra_us, secured, types
from tests.bench.world import World

EVENTS, RUNS = 10_000_000, 3
TREES, ATTRIBUTES = (10, 20, 30), (2, 4, 6)
READ, WHEN, DENY = "read", "read when", "deny"
OPERATORS: Mapping[str, str] = {READ: "ξ", WHEN: "φ", DENY: "ψ"}


def operators(_world: World) -> Iterator[Figure]:
    """Microseconds of security an event on one core, in each setting of the paper."""
    least = ATTRIBUTES[0]
    settings = {_Setting(trees, least, READ): "I" for trees in TREES}
    settings |= {_Setting(TYPES, count, READ): "II" for count in ATTRIBUTES[1:]}
    settings |= {_Setting(TYPES, least, operator): "III" for operator in (WHEN, DENY)}
    session = build_session("local[1]", None)
    try:
        for setting, experiment in settings.items():
            costs = setting.extra_us(session)
            yield middle(f"experiment {experiment}: {setting}", costs, "µs an event")
            # A second of one core has a thousand milliseconds.
            shares = [each * RATE / 1e3 for each in costs]
            yield middle(f"the same at {RATE:,} events/s, each second", shares, "ms")
    finally:
        session.stop()


@dataclass(frozen=True, slots=True)
class _Setting:
    """So many trees (types of events), attributes beside the type, and an operator for all."""

    trees: int
    attributes: int
    operator: str

    def __str__(self) -> str:
        """The setting in words."""
        return f"{self.trees} trees, {self.attributes} attributes, {OPERATORS[self.operator]}"

    @property
    def _names(self) -> list[str]:
        return [f"a{number}" for number in range(self.attributes)]

    @property
    def _stream(self) -> Relation:
        schema = Schema(
            (
                Attribute("ts", Type.TIMESTAMP, required=True),
                Attribute("type", Type.STRING, required=True),
                *(Attribute(name, Type.BIGINT) for name in self._names),
            )
        )
        time = TimeSource.DATA
        return Relation(
            1, "events", RelationKind.STREAM, schema, "ts", lateness_ms=1_000, time=time
        )

    @property
    def _view(self) -> RoleView:
        """What the operator leaves. A denied event is looked up by its type and passed no further.

        The condition is the paper's, which lets all events pass.
        """
        schema, known = self._stream.schema, f"type IN ({types(self.trees)})"
        rows = parse_condition(f"NOT ({known})" if self.operator == DENY else known, schema)
        when = self.operator == WHEN
        rights = [
            AttributeRight(name, parse_condition(f"{name} > 0", schema) if when else None)
            for name in self._names
        ]
        return RoleView(rows, (AttributeRight("ts"), AttributeRight("type"), *rights))

    def _events(self, session: SparkSession) -> DataFrame:
        number = fn.col("id")
        at = fn.timestamp_micros(
            fn.lit(1_700_000_000_000_000) + number * (1_000_000 // RATE)
        ).alias("ts")
        kind = fn.concat(fn.lit("t"), fn.pmod(fn.hash(number), fn.lit(self.trees)).cast("string"))
        values = ((number + place + 1).alias(name) for place, name in enumerate(self._names))
        return session.range(0, EVENTS, 1, 1).select(at, kind.alias("type"), *values)

    def extra_us(self, session: SparkSession) -> list[float]:
        """What the operators and the label add to a query over all attributes, of each run."""
        events, names = self._events(session), ["ts", "type", *self._names]
        text = f"SELECT {', '.join(names)} FROM events"
        mine = secured(events, self._stream, self._view, text)
        return extra_us(mine, events.select(*names), EVENTS, RUNS)
