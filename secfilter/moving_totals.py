"""The groups of a window that no tuple leaves: totals, so no tuple has to be kept.

The state grows with the number of groups and the length of their texts, and both are limited.
Beyond the limit no new group opens: its tuples are withheld. The known groups go on, but for a
tuple with a longer text that would be their least or greatest one. Sums are exact, so the order of
tuples does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

from catalog.schema import Type, held_as
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_aggregates import Computed, GroupRow, as_float
from secfilter.moving_groups import Labelled, Replaced
from secfilter.moving_rows import Row
from secfilter.moving_values import Value, text_of, value_of
from secfilter.moving_window import Arrival, HeldLimits, Words, united

# The functions whose totals are kept. The others need all values of a group.
TOTALLED = frozenset({"count", "sum", "avg", "min", "max"})
_LARGEST = 2**63
_BEST: dict[str, Callable[[Iterable[Any]], Any]] = {"min": min, "max": max}


@dataclass(slots=True)
class Total:
    """What is kept of the values of one aggregate. `count` is how many are not NULL.

    `finite` says whether all of them are finite. `best` is the least or the greatest one.
    """

    count: int = 0
    total: Fraction = Fraction()
    finite: bool = True
    best: Value | None = None

    def add(self, value: Value | None, each: Computed) -> None:
        """Add a value of a tuple."""
        if value is None:
            return
        self.count += 1
        match each.function:
            case "sum" | "avg" if isinstance(value, int | float):
                self._sum(value, exact=each.function == "sum" and isinstance(value, int))
            case "min" | "max" as wanted:
                self.best = value if self.best is None else _BEST[wanted]((self.best, value))

    def _sum(self, value: float, *, exact: bool) -> None:
        if not isfinite(value):
            self.finite = False
        else:
            self.total += Fraction(value) if exact else Fraction(float(value))

    def value(self, each: Computed) -> Value | None:
        """The result of the aggregate so far."""
        if each.function == "count":
            return self.count
        if not self.count or not self.finite:
            return None
        match each.function:
            case "sum" if each.type is not Type.DOUBLE:
                return int(self.total) if -_LARGEST <= self.total < _LARGEST else None
            case "sum":
                return as_float(self.total)
            case "avg":
                total = as_float(self.total)
                return None if total is None else total / self.count
        return self.best

    def state(self) -> list[object]:
        """The total in JSON's types."""
        best = None if self.best is None else text_of(self.best)
        return [self.count, str(self.total), self.finite, best]

    @classmethod
    def restored(cls, state: Sequence[Any], each: Computed) -> Total:
        """The total that `state` gave."""
        count, total, finite, best = state
        known = None if best is None or each.type is None else value_of(best, each.type)
        return cls(count, Fraction(total), finite, known)


@dataclass(slots=True)
class _Group:
    totals: list[Total]
    label: Words
    tuples: int = 0
    text: str = ""


@dataclass
class Totals:
    """The groups of one window without an end. No row ever leaves them."""

    summary: GroupRow
    limits: HeldLimits
    found: dict[str, _Group] = field(default_factory=dict)
    characters: int = 0
    # The groups that open at this instant, and how much longer all texts become about.
    _opening: set[str] = field(default_factory=set)
    _longer: int = 0
    # The places of the aggregates that keep a text.
    _texts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._texts = tuple(
            place
            for place, each in enumerate(self.summary.aggregates)
            if each.function in _BEST and each.type and held_as(each.type) is Type.STRING
        )

    def has_room(self, each: Arrival) -> bool:
        """Whether a tuple may come. It must come then, before the next `apply`."""
        key = each.row
        opens = key not in self.found and key not in self._opening
        if opens and len(self.found) + len(self._opening) >= self.limits.tuples:
            return False
        growth = self._growth(each) + (len(key) if opens else 0)
        longer = self._longer + growth
        if growth and self.characters + longer > self.limits.characters:
            return False
        if opens:
            self._opening.add(key)
        self._longer = longer
        return True

    def _growth(self, each: Arrival) -> int:
        """How much longer the texts of its group may become. A number never becomes long."""
        group = self.found.get(each.row)
        if group is None:
            return len(each.arguments)
        growth, texts = 0, each.arguments.split(SEPARATOR) if self._texts else []
        for place in self._texts:
            computed, best = self.summary.aggregates[place], group.totals[place].best
            text = texts[computed.argument or 0]
            if text != NULL_MARK:
                kept = text if best is None else _BEST[computed.function]((best, text))
                growth += max(0, len(kept) - len(str(best or "")))
        return growth

    def apply(self, left: Collection[Row], came: Collection[Row]) -> Iterator[Replaced]:
        """Add rows. Gives the rows of the groups that they change."""
        if left:
            raise ValueError("no row leaves a window without an end")
        self._opening.clear()
        self._longer = 0
        changed: dict[str, list[Row]] = {}
        for row in came:
            changed.setdefault(row.text, []).append(row)
        for key, rows in sorted(changed.items()):
            group = self.found.get(key)
            old = None if group is None else Labelled(group.text, group.label)
            new = self._add(key, rows)
            yield Replaced(key, old, Labelled(new.text, new.label))

    def _add(self, key: str, rows: Sequence[Row]) -> _Group:
        group = self.found.get(key)
        if group is None:
            group = _Group([Total() for _ in self.summary.aggregates], ())
            self.found[key] = group
            self.characters += len(key)
        for row in rows:
            group.tuples += 1
            group.label = united((group.label, row.label)) if group.label else row.label
            values = iter(self.summary.read(row.arguments))
            for total, each in zip(group.totals, self.summary.aggregates, strict=True):
                if each.argument is not None:
                    total.add(next(values), each)
        self.characters -= len(group.text)
        group.text = self._text(key, group)
        self.characters += len(group.text)
        return group

    def _text(self, key: str, group: _Group) -> str:
        results = (
            group.tuples if each.argument is None else total.value(each)
            for total, each in zip(group.totals, self.summary.aggregates, strict=True)
        )
        parts = key.split(SEPARATOR) if self.summary.keys else []
        every = [*parts, *map(text_of, results)]
        return SEPARATOR.join(every[place] for place in self.summary.shown)

    def rows(self) -> Iterator[Labelled]:
        """The rows of all groups."""
        return (Labelled(group.text, group.label) for group in self.found.values())

    def standing(self) -> Iterator[Replaced]:
        """The rows of all groups, as if something had changed each of them."""
        for key, group in self.found.items():
            yield Replaced(key, None, Labelled(group.text, group.label))

    def state(self) -> list[list[object]]:
        """The groups in JSON's types."""
        return [
            [
                key,
                list(group.label),
                group.tuples,
                [total.state() for total in group.totals],
            ]
            for key, group in self.found.items()
        ]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on with groups that `state` gave."""
        for key, label, tuples, totals in state:
            kept = [
                Total.restored(each, computed)
                for each, computed in zip(totals, self.summary.aggregates, strict=True)
            ]
            group = _Group(kept, tuple(label), tuples)
            group.text = self._text(key, group)
            self.found[key] = group
            self.characters += len(key) + len(group.text)


def totals_of(summary: GroupRow, limits: HeldLimits) -> Totals | None:
    """The totals of groups, or None if an aggregate needs all values."""
    kept = summary.computes and all(each.function in TOTALLED for each in summary.aggregates)
    return Totals(summary, limits) if kept else None
