"""The streams that the tests and the examples of grammar.md and docs/borealis.md read."""

from __future__ import annotations

from catalog.errors import NotFound
from catalog.record_format import TimeFormat
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, AttributeType, Schema, Type, parse_type

_TYPES: dict[str, dict[str, AttributeType]] = {
    "trades": {
        "ts": Type.TIMESTAMP,
        "symbol": Type.STRING,
        "price": Type.DOUBLE,
        "volume": Type.BIGINT,
    },
    "quotes": {
        "at": Type.TIMESTAMP,
        "symbol": Type.STRING,
        "bid": Type.DOUBLE,
        "open": Type.BOOLEAN,
    },
    "trades-eu": {
        "ts": Type.TIMESTAMP,
        "symbol": Type.STRING,
        "price": Type.DOUBLE,
        "volume": Type.BIGINT,
    },
    "hourly": {
        "window_start": Type.TIMESTAMP,
        "window_end": Type.TIMESTAMP,
        "symbol": Type.STRING,
        "n": Type.BIGINT,
    },
    "timeless": {"symbol": Type.STRING, "price": Type.DOUBLE},
    "packets": {"time": Type.TIMESTAMP, "protocol": Type.STRING, "bytes": Type.BIGINT},
    "flows": {"began": Type.TIMESTAMP, "host": Type.STRING, "packets": Type.BIGINT},
    "samples": {"at": Type.TIMESTAMP, "sensor": Type.STRING, "value": Type.DOUBLE},
    "orders": {
        "ts": Type.TIMESTAMP,
        "buyer": Type.STRING,
        "tags": parse_type("ARRAY<STRING>"),
        "prices": parse_type("MAP<STRING, DOUBLE>"),
        "place": parse_type("STRUCT<city STRING, zip BIGINT>"),
        "items": parse_type("ARRAY<STRUCT<name STRING, number BIGINT, sent TIMESTAMP>>"),
    },
    # The output of a query that gives upserts.
    "totals": {
        "instant": Type.TIMESTAMP,
        "deleted": Type.BOOLEAN,
        "symbol": Type.STRING,
        "n": Type.BIGINT,
    },
}
_EVENT_TIMES = {
    "trades": "ts",
    "quotes": "at",
    "trades-eu": "ts",
    "hourly": "window_end",
    "timeless": None,
    "packets": "time",
    "flows": "began",
    "samples": "at",
    "orders": "ts",
    "totals": "instant",
}
_KEYS = {"totals": ("symbol",)}
# How the records of some streams write times. Those of the others are ISO 8601.
_TIME_FORMATS = {
    "packets": TimeFormat.EPOCH_S,
    "flows": TimeFormat.EPOCH_S,
    "samples": TimeFormat.EPOCH_MS,
}


def relation(name: str) -> Relation:
    """One of the streams."""
    number = list(_TYPES).index(name)
    schema = Schema(tuple(Attribute(n, t, required=False) for n, t in _TYPES[name].items()))
    return Relation(
        object_id=number + 1,
        name=name,
        kind=RelationKind.OUTPUT if name in _KEYS else RelationKind.STREAM,
        schema=schema,
        event_time=_EVENT_TIMES[name],
        lateness_ms=0,
        keys=_KEYS.get(name, ()),
    )


class Streams:
    """A resolver of the streams, which notes every name that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def relation(self, name: str) -> Relation:
        """The stream, or NotFound in words that nobody may ever see."""
        self.asked.append(name)
        if name not in _TYPES:
            raise NotFound("hidden-or-absent")
        return relation(name)

    def time_format(self, name: str) -> TimeFormat:
        """How the records of the stream write times."""
        return _TIME_FORMATS.get(name, TimeFormat.ISO)
