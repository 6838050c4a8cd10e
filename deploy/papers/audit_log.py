"""The data of paper 001's story: an audit log of companies, and what its queries give.

The answers are computed here from the tuples and the paper's definitions alone. Levels are vectors
with dominance and least upper bound. Nothing of the platform takes part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

CONFLICT_CLASSES = {"COI1": ("Company1", "Company2"), "COI2": ("CompanyA", "CompanyB", "CompanyC")}
TRUSTED, NOTHING = "T", "⊥"
SCHEMA = (
    *("timestamp:timestamp!", "serviceId:string!", "msgType:string!"),
    *("sender:string!", "receiver:string!", "outcome:string!"),
)
COUNTED = 3
ALL = "SELECT serviceId, timestamp, sender, receiver, level FROM MessageLog"
# Qi and Qj have the same text, and run at two levels (001 §3).
COUNT = """SELECT COUNT(*) AS many FROM MessageLog [ROWS 3]
WHERE msgType = 'send' AND outcome = 'success' AND receiver = 'CompanyB'"""
Level = tuple[str, str]
_BEGIN = datetime(2026, 1, 31, 10, tzinfo=UTC)
_CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Message:
    """A tuple of the log: an event that the company `by` has audited."""

    at: datetime
    by: str
    service: str
    sender: str
    receiver: str
    outcome: str = "success"

    def record(self) -> dict[str, object]:
        """The tuple as a JSON object of the log's schema."""
        return {
            "timestamp": self.at.isoformat(),
            "serviceId": self.service,
            "msgType": "send",
            "sender": self.sender,
            "receiver": self.receiver,
            "outcome": self.outcome,
        }

    @property
    def level(self) -> Level:
        """The level of what a company sends: the company, and nothing of the other class."""
        first = self.by in CONFLICT_CLASSES["COI1"]
        return (self.by, NOTHING) if first else (NOTHING, self.by)

    @property
    def is_clock(self) -> bool:
        """Whether it only moves time."""
        return self.service == _CLOCK


def messages(minute: int) -> list[Message]:
    """What the companies audit in a minute of the story, in the order of time."""
    plan = [
        *(("Company1", "CompanyB"), ("Company2", "CompanyB"), ("CompanyB", "Company1")),
        *(("Company2", "CompanyB"), ("Company2", "CompanyB"), ("Company1", "CompanyB")),
        *(("CompanyA", "Company2"), ("Company1", "CompanyC"), ("CompanyC", "Company1")),
        ("Company1", "CompanyB"),
    ]
    begin = _BEGIN + timedelta(minutes=minute)
    return [
        Message(begin + timedelta(seconds=number), sender, "5", sender, receiver)
        for number, (sender, receiver) in enumerate(plan)
    ]


def clock(minute: int) -> Message:
    """A message at the end of a minute, behind which its windows are complete."""
    at = _BEGIN + timedelta(minutes=minute, seconds=50)
    return Message(at, "Company1", _CLOCK, "Company1", "CompanyA", "none")


def dominated(low: Level, high: Level) -> bool:
    """Definition 4."""
    return all(a in (b, NOTHING) or b == TRUSTED for a, b in zip(low, high, strict=True))


def all_messages(sent: Sequence[Message], reader: Level) -> Iterator[tuple[object, ...]]:
    """What a reader gets of the query of all messages."""
    for each in sent:
        if dominated(each.level, reader):
            printed = f"[{each.level[0]}, {each.level[1]}]"
            yield each.at, each.sender, each.receiver, printed


def counts(sent: Sequence[Message], level: Level) -> Iterator[tuple[object, ...]]:
    """What Qi or Qj gives at a level: each new count among the newest tuples that it dominates."""
    window: list[Message] = []
    before: int | None = None
    for each in sent:
        if not dominated(each.level, level):
            continue
        window = [*window, each][-COUNTED:]
        many = sum(m.receiver == "CompanyB" and m.outcome == "success" for m in window)
        if many != before and many:
            yield each.at, many
        before = many
