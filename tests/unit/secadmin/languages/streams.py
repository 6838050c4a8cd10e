"""The streams that the tests and the examples of grammar.md read."""

from __future__ import annotations

from catalog.errors import NotFound
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type

_TYPES = {
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
}
_EVENT_TIMES = {
    "trades": "ts",
    "quotes": "at",
    "trades-eu": "ts",
    "hourly": "window_end",
    "timeless": None,
}


def relation(name: str) -> Relation:
    """One of the streams."""
    number = list(_TYPES).index(name)
    schema = Schema(tuple(Attribute(n, t, required=False) for n, t in _TYPES[name].items()))
    return Relation(
        object_id=number + 1,
        name=name,
        kind=RelationKind.STREAM,
        schema=schema,
        event_time=_EVENT_TIMES[name],
        lateness_ms=0,
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
