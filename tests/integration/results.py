"""What the scenario's query must give, computed in plain Python, and what arrived."""

from __future__ import annotations

import csv
import gzip
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from deploy.scenario.listener import Delivery
from deploy.scenario.story import Story

Result = tuple[str, int, int, int, str]
FILES = {"1": "sp500", "2": "nasdaq"}


def expected(last_day: date, after: date = date.min) -> Counter[Result]:
    """Weeks (since 1970) with an end in (after, last_day]: start, percent, days, volume, label."""
    groups = defaultdict(list)
    package = Path(str(find_spec("arch").origin)).parent  # type: ignore[union-attr]
    for label, name in FILES.items():
        with gzip.open(package / "data" / name / f"{name}.csv.gz", "rt") as lines:
            for row in csv.DictReader(lines):
                month, number, year = (int(part) for part in row["Date"].split("/"))
                day = date(year, month, number)
                week = (day.toordinal() - date(1970, 1, 1).toordinal()) // 7
                opened, closed = float(row["Open"]), float(row["Close"])
                percent = math.floor((closed - opened) * 100 / opened)
                if day <= last_day:
                    groups[week, percent].append((int(label), int(float(row["Volume"]))))
    results: Counter[Result] = Counter()
    for (week, percent), days in groups.items():
        start = date.fromordinal(date(1970, 1, 1).toordinal() + week * 7)
        end = date.fromordinal(start.toordinal() + 7)
        if after < end <= last_day:
            label = str(max(label for label, _ in days) if len({x for x, _ in days}) == 1 else 3)
            volume = sum(volume for _, volume in days)
            results[f"{start}T00:00:00.000000Z", percent, len(days), volume, label] += 1
    return results


def received(deliveries: Iterable[Delivery]) -> Counter[Result]:
    """What arrived, each id once; a repeated id must repeat the same result."""
    once: dict[str, Result] = {}
    for d in deliveries:
        value = d.value
        result = (
            value["window_start"],
            value["percent"],
            value["days"],
            value["volume"],
            d.label,
        )
        assert once.setdefault(d.id, result) == result, f"the id {d.id} stands for two results"
    return Counter(once.values())


def only(label: str, results: Counter[Result]) -> Counter[Result]:
    """The results with that label."""
    return Counter({result: count for result, count in results.items() if result[-1] == label})


def last_day_sent(story: Story) -> date:
    """The newest day that both streams have."""
    return min(date.fromisoformat(quotes[-1].day[:10]) for quotes in story.sent.values())
