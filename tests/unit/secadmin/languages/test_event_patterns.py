"""What PATTERN SEQ, AND and OR mean: an interpreter that tries all subsequences of the events.

It knows the words of a pattern and no plan. The results of the plan are those of the oracle.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations, permutations

import pytest

from catalog.label import Label
from secadmin.languages import parse_sql
from tests.lanes import number_of
from tests.oracle.plans import run
from tests.oracle.values import EPOCH, Tuple
from tests.unit.secadmin.languages.streams import Streams

RUNS = number_of("EVENT_PATTERN_RUNS", sample=60, long=2_000)
ROWS, WITHIN_S = 10, 12
Taken = Mapping[str, float | None]


@dataclass(frozen=True)
class Given:
    """A row of one of the streams: when, of which symbol, and its price or bid."""

    second: int
    stream: str
    symbol: str
    value: float | None


@dataclass(frozen=True)
class Event:
    """An event of a pattern. `fits` says of its value, and those of events before it, if it is."""

    stream: str
    name: str
    fits: Callable[[float | None, Taken], bool] = lambda _value, _taken: True
    absent: bool = False

    def is_of(self, row: Given, taken: Taken) -> bool:
        """Whether the row is this event."""
        return row.stream == self.stream and self.fits(row.value, taken)


def over(name: str) -> Callable[[float | None, Taken], bool]:
    """Whether a value is above that of an event before it. What is unknown is not."""

    def fits(value: float | None, taken: Taken) -> bool:
        other = taken.get(name)
        return value is not None and other is not None and value > other

    return fits


A, B = Event("trades", "a"), Event("quotes", "b")
PATTERNS: Mapping[str, tuple[str, str, tuple[Event, ...]]] = {
    "SEQ(trades a, quotes b)": ("SEQ", "", (A, B)),
    "SEQ(trades a, NOT quotes q, trades c)": (
        "SEQ",
        "q AS q.bid > a.price, c AS c.price > a.price",
        (A, Event("quotes", "q", over("a"), absent=True), Event("trades", "c", over("a"))),
    ),
    "SEQ(trades a, quotes b, NOT trades n, quotes d)": (
        "SEQ",
        "b AS b.bid > a.price, n AS n.price > b.bid",
        (
            A,
            Event("quotes", "b", over("a")),
            Event("trades", "n", over("b"), absent=True),
            Event("quotes", "d"),
        ),
    ),
    "AND(trades a, quotes b)": ("AND", "", (A, B)),
    "AND(trades a, quotes b, trades c)": (
        "AND",
        "c AS c.price > b.bid",
        (A, B, Event("trades", "c", over("b"))),
    ),
    "OR(trades a, quotes b)": (
        "OR",
        "a AS a.price > 1",
        (Event("trades", "a", lambda value, _: value is not None and value > 1), B),
    ),
}


def rows(chance: random.Random) -> list[Given]:
    """Rows of both streams, no two at once."""
    return [
        Given(second, chance.choice(STREAMS), chance.choice("xxxy"), chance.choice(VALUES))
        for second in sorted(chance.sample(range(24), ROWS))
    ]


STREAMS = ("trades", "quotes")
VALUES = (None, 1.0, 1.0, 2.0, 3.0)


def ways(events: Sequence[Event], part: Sequence[Given]) -> Iterator[tuple[int, ...]]:
    """All subsequences of the rows that are these events in this order, the nearest rows first."""
    present = [each for each in events if not each.absent]
    for places in combinations(range(len(part)), len(present)):
        taken: dict[str, float | None] = {}
        late = part[places[-1]].second - part[places[0]].second > WITHIN_S
        if not late and _fit(events, part, places, taken):
            yield places


def _fit(
    events: Sequence[Event],
    part: Sequence[Given],
    places: Sequence[int],
    taken: dict[str, float | None],
) -> bool:
    left, behind, absent = list(places), -1, list[Event]()
    for event in events:
        if event.absent:
            absent.append(event)
            continue
        place = left.pop(0)
        between = part[behind + 1 : place] if behind >= 0 else ()
        if any(none.is_of(row, taken) for none in absent for row in between):
            return False
        if not event.is_of(part[place], taken):
            return False
        taken[event.name], behind, absent = part[place].value, place, []
    return True


def orders(kind: str, events: Sequence[Event]) -> list[Sequence[Event]]:
    """The orders in which the events may come: the preferred one first."""
    if kind == "SEQ":
        return [events]
    return [[each] for each in events] if kind == "OR" else [*permutations(events)]


def expected(
    kind: str, events: Sequence[Event], given: Sequence[Given]
) -> Counter[tuple[object, ...]]:
    """By each row at which a match begins, its time, its symbol, and the values of its events."""
    found: Counter[tuple[object, ...]] = Counter()
    for symbol in ("x", "y"):
        part = [each for each in given if each.symbol == symbol]
        for start in range(len(part)):
            begun = (
                (order, way)
                for order in orders(kind, events)
                for way in ways(order, part)
                if way[0] == start
            )
            first = next(begun, None)
            if first is None:
                continue
            names = [each.name for each in first[0] if not each.absent]
            values = {name: part[at].value for name, at in zip(names, first[1], strict=True)}
            shown = (values.get(each.name) for each in events if not each.absent)
            found[(EPOCH + timedelta(seconds=part[first[1][-1]].second), symbol, *shown)] += 1
    return found


@pytest.mark.parametrize("text", PATTERNS)
def test_a_pattern_of_events_is_what_trying_all_subsequences_finds(text: str) -> None:
    kind, define, events = PATTERNS[text]
    attributes = {"trades": "price", "quotes": "bid"}
    present = [each for each in events if not each.absent]
    measures = ", ".join(f"{e.name}.{attributes[e.stream]} AS of_{e.name}" for e in present)
    defined = f" DEFINE {define}" if define else ""
    plan = parse_sql(
        f"SELECT match_time, symbol, {', '.join(f'of_{e.name}' for e in present)} "
        f"FROM PATTERN {text} WITHIN INTERVAL '{WITHIN_S}' SECOND "
        f"MATCH_RECOGNIZE (PARTITION BY symbol MEASURES {measures}{defined})",
        Streams(),
    ).plan
    chance, label, matched = random.Random(3), Label.of(0), 0
    for number in range(RUNS):
        given = rows(chance)
        tables = {
            name: [
                Tuple((EPOCH + timedelta(seconds=e.second), e.symbol, e.value, None), label)
                for e in given
                if e.stream == name
            ]
            for name in attributes
        }
        results = run(plan.root, tables, lambda _: label)
        wanted = expected(kind, events, given)
        assert Counter(each.values for each in results) == wanted, f"run {number}: {given}"
        matched += bool(wanted)
    assert matched > RUNS // 4, "the runs say something"
