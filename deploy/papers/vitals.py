"""The data of paper 000's story: what patients' devices send, and what its query CQ1 gives.

The answers are computed here from the tuples alone, at each instant from scratch. Nothing of the
platform takes part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CQ1 = """\
SELECT HRStr.patID AS patID, AVG(pulseRate) AS pulse, AVG(systolic) AS systolic,
       AVG(diastolic) AS diastolic
FROM HRStr [RANGE 2 MINUTES], BPStr [RANGE 2 MINUTES]
WHERE HRStr.patID = BPStr.patID
GROUP BY HRStr.patID
"""
SCHEMAS = {
    "HRStr": ("ts:timestamp!", "patID:bigint!", "devID:string", "pulseRate:bigint"),
    "BPStr": (
        "ts:timestamp!",
        "patID:bigint!",
        "devID:string",
        "systolic:bigint",
        "diastolic:bigint",
    ),
}
RANGE = timedelta(minutes=2)
_BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
_APART = timedelta(seconds=30)
_BEHIND = timedelta(seconds=10)
_INSTANT = timedelta(microseconds=1)
# Patient, average pulse rate, average systolic and diastolic pressure.
Row = tuple[int, float, float, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A tuple of HRStr, whose values are one number, or of BPStr, whose values are two."""

    at: datetime
    patient: int
    values: tuple[int, ...]

    def record(self) -> dict[str, object]:
        """The tuple as a JSON object of its stream's schema."""
        names = ("pulseRate",) if len(self.values) == 1 else ("systolic", "diastolic")
        written = dict(zip(names, self.values, strict=True))
        device = f"X{self.patient}U"
        return {"ts": self.at.isoformat(), "patID": self.patient, "devID": device, **written}


def measured(patient: int, minutes: int, count: int = 6) -> dict[str, list[Measurement]]:
    """What a patient's devices send, by stream: every 30 seconds from that minute of the story on.

    The heart rate comes first, and the blood pressure ten seconds behind it.
    """
    begin = _BEGIN + timedelta(minutes=minutes)
    rates, pressures = [], []
    for number in range(count):
        at = begin + number * _APART
        seed = 7 * patient + 3 * number + minutes
        rates.append(Measurement(at, patient, (70 + seed % 23,)))
        pressures.append(Measurement(at + _BEHIND, patient, (110 + seed % 31, 70 + seed % 17)))
    return {"HRStr": rates, "BPStr": pressures}


def answers(sent: dict[str, list[Measurement]], patient: int) -> frozenset[Row]:
    """The rows that CQ1 ever gives for a patient: its averages at each instant."""
    own = {
        stream: [each for each in measurements if each.patient == patient]
        for stream, measurements in sent.items()
    }
    every = [each.at for measurements in own.values() for each in measurements]
    instants = sorted({*every, *(at + RANGE + _INSTANT for at in every)})
    return frozenset(row for at in instants for row in _row(own, patient, at))


def _row(own: dict[str, list[Measurement]], patient: int, at: datetime) -> Iterator[Row]:
    rates, pressures = (
        [each.values for each in own[stream] if each.at <= at <= each.at + RANGE]
        for stream in ("HRStr", "BPStr")
    )
    # Each rate is paired with each pressure, so the averages are those of the windows.
    if rates and pressures:
        pulse, systolic, diastolic = (
            _mean([each[place] for each in values])
            for values, place in ((rates, 0), (pressures, 0), (pressures, 1))
        )
        yield patient, pulse, systolic, diastolic


def _mean(values: Sequence[int]) -> float:
    return round(sum(values) / len(values), 6)
