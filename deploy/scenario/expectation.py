"""What q1 must give, computed from the input file in plain Python and not by the platform."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from deploy.quotes import Quote

WEEK = timedelta(days=7)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all times here are UTC
SOURCE_LABELS = {"in1": 1, "in2": 2}


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """One result of q1: how many days of a week moved by this whole percentage, and their volume.

    `label` is the decimal label: 1 only from in1, 2 only from in2, 3 from both.
    """

    start: datetime
    percent: int
    days: int
    volume: int
    label: int

    @property
    def end(self) -> datetime:
        """When the week ends."""
        return self.start + WEEK


def expected_weeks(sent: Mapping[str, Sequence[Quote]]) -> list[Week]:
    """All results whose week has closed in both streams, by their newest day."""
    groups: dict[tuple[datetime, int], list[tuple[str, Quote]]] = defaultdict(list)
    for stream, quotes in sent.items():
        for quote in quotes:
            start = EPOCH + (day_of(quote) - EPOCH) // WEEK * WEEK
            percent = math.floor((quote.close - quote.open) * 100 / quote.open)
            groups[start, percent].append((stream, quote))
    closed = min(day_of(quotes[-1]) for quotes in sent.values())
    return sorted(
        _week(start, percent, members)
        for (start, percent), members in groups.items()
        if start + WEEK <= closed
    )


def _week(start: datetime, percent: int, members: list[tuple[str, Quote]]) -> Week:
    label = 0
    for stream, _ in members:
        label |= SOURCE_LABELS[stream]
    return Week(start, percent, len(members), sum(q.volume for _, q in members), label)


def day_of(quote: Quote) -> datetime:
    """The quote's day, UTC."""
    return datetime.fromisoformat(quote.day.removesuffix("Z"))
