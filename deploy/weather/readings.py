"""Readings of a weather station, and what LTA must get of them, in plain Python."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2012, 5, 28, tzinfo=UTC)
EVERY = timedelta(seconds=30)
SIZE, STEP = timedelta(seconds=300), timedelta(seconds=60)
RAIN_MM_AN_HOUR = 5.0
SCHEMA = (
    "samplingtime:timestamp!",
    *(f"{name}:double" for name in ("temperature", "humidity", "solarradiation", "rainrate")),
    *(f"{name}:double" for name in ("windspeed", "winddirection", "barometer")),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading, with the attributes of the paper."""

    samplingtime: str
    temperature: float
    humidity: float
    solarradiation: float
    rainrate: float
    windspeed: float
    winddirection: float
    barometer: float

    @property
    def at(self) -> datetime:
        """When it was read."""
        return datetime.fromisoformat(self.samplingtime)


@dataclass(frozen=True, slots=True, order=True)
class RainWindow:
    """A result of LTA's query: a window of the rain that LTA may see."""

    end: datetime
    last: datetime
    rain: float
    wind: float


def readings(first: int, last: int) -> list[Reading]:
    """The readings of these numbers, the last one not included. Showers come and go."""
    return [_reading(number) for number in range(first, last)]


def _reading(number: int) -> Reading:
    shower = 40 * math.sin(number / 9) + 12 * math.sin(number / 2.3)
    return Reading(
        samplingtime=(START + number * EVERY).isoformat().replace("+00:00", "Z"),
        temperature=round(28 + 3 * math.sin(number / 40), 1),
        humidity=round(80 + 10 * math.cos(number / 40), 1),
        solarradiation=round(max(0.0, 600 * math.sin(number / 120)), 1),
        rainrate=round(max(0.0, shower), 1),
        windspeed=round(4 + 3 * math.sin(number / 5), 1),
        winddirection=float(number * 7 % 360),
        barometer=round(1009 + math.sin(number / 60), 1),
    )


def write(path: Path, sent: Sequence[Reading]) -> Path:
    """Write the readings as JSON lines, for `secadmin produce`."""
    path.write_text("".join(json.dumps(asdict(reading)) + "\n" for reading in sent))
    return path


def expected(sent: Sequence[Reading]) -> list[RainWindow]:
    """What LTA gets of these readings: the windows that have closed by the newest one."""
    groups: dict[datetime, list[Reading]] = defaultdict(list)
    for reading in sent:
        if reading.rainrate > RAIN_MM_AN_HOUR:
            end = START + ((reading.at - START) // STEP + 1) * STEP
            for number in range(SIZE // STEP):
                groups[end + number * STEP].append(reading)
    newest = max(reading.at for reading in sent)
    return sorted(_window(end, seen) for end, seen in groups.items() if end <= newest)


def _window(end: datetime, seen: Sequence[Reading]) -> RainWindow:
    rain = sum(reading.rainrate for reading in seen) / len(seen)
    last = max(reading.at for reading in seen)
    return RainWindow(end, last, round(rain, 6), max(reading.windspeed for reading in seen))
