"""Streams with labels of several words, and their records: what the hand-made cases read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from catalog.clearance import Clearance
from catalog.errors import NotFound
from catalog.label import Label
from catalog.plan import sources
from catalog.record_format import TimeFormat
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import Attribute, AttributeType, Schema, Type, parse_type
from tests.differential.case import Case, Class, Record
from tests.oracle.nested_values import from_json
from tests.oracle.values import Value
from tests.plans import AnyPlan, whole

TRADES, EU, QUOTES, COMPANY, TRADES_AGGREGATED = 0, 63, 64, 130, 5
SOURCES = Label.of(TRADES, EU, QUOTES)
NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001
MINUTE = 60_000


def _relation(number: int, name: str, event_time: str, **types: AttributeType) -> Relation:
    schema = Schema(tuple(Attribute(each, kind) for each, kind in types.items()))
    return Relation(number, name, RelationKind.STREAM, schema, event_time, 0)


_TRADE = {
    "ts": Type.TIMESTAMP,
    "symbol": Type.STRING,
    "price": Type.DOUBLE,
    "volume": Type.BIGINT,
}
# The upserts of another query.
_HIGH = {
    "instant": Type.TIMESTAMP,
    "deleted": Type.BOOLEAN,
    "symbol": Type.STRING,
    "n": Type.BIGINT,
}
_QUOTE = {"at": Type.TIMESTAMP, "symbol": Type.STRING, "bid": Type.DOUBLE, "open": Type.BOOLEAN}
# Nested attributes.
_ORDER = {
    "ts": Type.TIMESTAMP,
    "buyer": Type.STRING,
    "tags": parse_type("ARRAY<STRING>"),
    "prices": parse_type("MAP<STRING, DOUBLE>"),
    "place": parse_type("STRUCT<city STRING, zip BIGINT>"),
    "items": parse_type("ARRAY<STRUCT<name STRING, number BIGINT, sent TIMESTAMP>>"),
}
RELATIONS = {
    "trades": _relation(1, "trades", "ts", **_TRADE),
    "trades-eu": _relation(2, "trades-eu", "ts", **_TRADE),
    "quotes": _relation(3, "quotes", "at", **_QUOTE),
    "news": replace(_relation(4, "news", "ts", ts=Type.TIMESTAMP), public=True),
    "orders": _relation(7, "orders", "ts", **_ORDER),
    "highs": replace(
        _relation(6, "highs", "instant", **_HIGH), kind=RelationKind.OUTPUT, keys=("symbol",)
    ),
}
REACHES = {
    1: Label.of(TRADES, COMPANY),
    2: Label.of(EU, COMPANY),
    3: Label.of(QUOTES),
    4: Label(),
    6: Label.of(TRADES, COMPANY),
    7: Label.of(TRADES, COMPANY),
}
# The senders of the trades that are visible. No two of them are one user's.
INDEPENDENT = {1: dict(enumerate((0, 63, 5, 62, 31, 32, 1, 33, 2, 3), start=1))}
DECLARED = replace(
    RELATIONS["trades"],
    declared=DeclaredAggregate(
        MINUTE, ("symbol",), ("count", "sum", "avg"), 3, TRADES, TRADES_AGGREGATED
    ),
)


class Market:
    """The resolver that query texts are read with."""

    def relation(self, name: str) -> Relation:
        """A stream of the market. Raises NotFound for any other."""
        if name not in RELATIONS:
            raise NotFound(name)
        return RELATIONS[name]

    def time_format(self, name: str) -> TimeFormat:
        """How the records of a stream write times: `trades-eu` in seconds, the others as text."""
        return TimeFormat.EPOCH_S if name == "trades-eu" else TimeFormat.ISO


def _wire(*categories: int) -> str:
    return Label.of(*categories).to_wire()


def _at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def _records(*given: tuple[tuple[Value, ...], str | None]) -> list[Record]:
    """The records, each of a sender of its own, numbered from 1."""
    return [Record(*each, sender=sender) for sender, each in enumerate(given, start=1)]


# tags, prices, place, items
_SENT = (
    '[{"name":"pen","number":2},'
    '{"name":"ink","sent":"2026-01-31T12:00:00.250000Z"},{"number":9223372036854775807}]'
)


def _order(seconds: float, buyer: str | None, *nested: str) -> tuple[Value, ...]:
    """The values of an order. What is not said is NULL."""
    kinds = [*_ORDER.values()][2:]
    texts = [*nested, *["null"] * (len(kinds) - len(nested))]
    read = (from_json(json.loads(text), kind) for text, kind in zip(texts, kinds, strict=True))
    return (_at(seconds), buyer, *read)


_US, _US_COMPANY, _EU = _wire(TRADES), _wire(TRADES, COMPANY), _wire(EU)
RECORDS = {
    "trades": _records(
        ((_at(0), "ACME", 10.0, 5), _US),
        ((_at(1), "ACME", 12.5, None), _US),
        ((_at(2), "ACME", None, 7), _US_COMPANY),
        ((_at(2), "ACME", None, 7), _US_COMPANY),
        ((_at(59.999999), "BETA", 20.0, 1), _wire(COMPANY)),
        ((_at(60), "BETA", 20.0, 2**63 - 1), _US),
        ((_at(61), "BETA", -0.5, 2**63 - 1), _US),
        ((_at(-1), None, 1e308, -3), _US),
        ((_at(-2), None, 1e308, 0), _US_COMPANY),
        ((None, "ACME", 99.0, 9), _US),
        # Invisible: no label, unreadable ones, none, and categories that cannot be here.
        ((_at(3), "ACME", 1.0, 100), None),
        ((_at(3), "ACME", 1.0, 101), "one"),
        ((_at(3), "ACME", 1.0, 102), ""),
        ((_at(3), "ACME", 1.0, 103), "0"),
        ((_at(3), "ACME", 1.0, 104), _wire(TRADES, QUOTES)),
        ((_at(3), "ACME", 1.0, 105), _wire(TRADES, 200)),
        ((_at(3), "ACME", 1.0, 106), _EU),
        ((_at(3), "ACME", 1.0, 107), "1,x"),
        ((_at(3), "ACME", 1.0, 108), " 1"),
        ((_at(3), "ACME", 1.0, 109), "18446744073709551617"),
    ),
    "trades-eu": _records(
        ((_at(0), "ACME", 11.0, 5), _EU),
        ((_at(30), "GAMMA", 3.25, 6), _wire(EU, COMPANY)),
        ((_at(30), "GAMMA", 3.25, 6), "-9223372036854775808,0,4"),
        ((_at(61), "", 0.0, 0), _EU),
        ((_at(4), "ACME", 1.0, 100), "9223372036854775808"),
        ((_at(4), "ACME", 1.0, 101), _US),
    ),
    "quotes": _records(
        ((_at(0), "ACME", 9.0, True), _wire(QUOTES)),
        ((_at(5), "ACME", 13.0, False), _wire(QUOTES)),
        ((_at(6.000001), "ACME", 14.0, None), _wire(QUOTES)),
        ((_at(-5), "BETA", None, True), _wire(QUOTES)),
        ((_at(1), None, 1.0, True), _wire(QUOTES)),
        ((None, "ACME", 2.0, True), _wire(QUOTES)),
        ((_at(1), "ACME", 3.0, True), _wire(TRADES)),
        ((_at(1), "ACME", 3.0, True), None),
    ),
    "orders": _records(
        (_order(0, "Ann", '["new","a, \\"b\\""]', '{"net":1.5,"tax":0.25}', '{"zip":7}'), _US),
        (_order(1, "Ann", '["new",null]', '{"net":2.0}', '{"city":"Linz","zip":8}'), _US_COMPANY),
        (_order(2, "Bob", "[]", "{}", "{}", _SENT), _US),
        (_order(61, "Bob", "null", "null", "null"), _US),
        (_order(62, None, '["new","old"]', '{"net":null}', '{"zip":7}', _SENT), _US_COMPANY),
    ),
    "highs": _records(
        ((_at(0), False, "ACME", 1), _US),
        ((_at(1), False, "BETA", 1), _US_COMPANY),
        ((_at(1), False, None, 4), _US),
        ((_at(2), False, "ACME", 3), _US_COMPANY),
        ((_at(3), True, "BETA", None), _US_COMPANY),
        ((_at(60), False, "BETA", 2), _US),
        ((_at(61), True, "ACME", None), _US_COMPANY),
        ((_at(62), False, "ACME", 9), _EU),
    ),
    "news": _records(((_at(0),), "0"), ((_at(1),), None), ((_at(2),), "1"), ((None,), "0")),
}

_EVERYTHING = Clearance.of(TRADES, EU, QUOTES, COMPANY, TRADES_AGGREGATED)
CLASSES = (
    Class(Clearance()),
    Class(_EVERYTHING),
    *(
        Class(Clearance.of(*held), weak)
        for held in (
            (TRADES,),
            (EU,),
            (TRADES, COMPANY),
            (EU, QUOTES, COMPANY),
            (TRADES_AGGREGATED,),
            (COMPANY,),
        )
        for weak in (False, True)
    ),
    *(
        Class(_EVERYTHING, weak, beyond=Clearance.of(*served))
        for served in ((), (TRADES,), (EU, COMPANY), (QUOTES, TRADES_AGGREGATED))
        for weak in (False, True)
    ),
)


def case_of(name: str, plan: AnyPlan, classes: Sequence[Class] = CLASSES) -> Case:
    """The case of a plan over the market."""
    meant = whole(plan)
    records = {relation.name: RECORDS[relation.name] for relation in sources(meant)}
    return Case(name, meant, records, REACHES, tuple(classes), SOURCES, INDEPENDENT)
