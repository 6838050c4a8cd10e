"""The story of paper 001: companies share one audit log, and a wall is between competitors.

`python3 -m deploy demo --paper 001` plays it. Each company sends its own audit records, whose level
is its own (001 §3). The auditor of a company, a session manager, a cloud manager and a trusted user
read one query, and each gets what its level dominates. Qi and Qj have one text and two levels. A
consultant chooses a company, which closes its competitor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import Console
from rich.table import Table

from deploy.errors import DeployError
from deploy.papers.audit_log import (
    ALL,
    CONFLICT_CLASSES,
    COUNT,
    NOTHING,
    SCHEMA,
    TRUSTED,
    Level,
    Message,
    all_messages,
    clock,
    counts,
    dominated,
    messages,
)
from deploy.papers.cast import Cast, patiently
from deploy.scenario.listener import Delivery
from deploy.stack import Stack

LOG = "MessageLog"
READERS: dict[str, Level] = {
    "auditor1": ("Company1", NOTHING),
    "session_manager": (NOTHING, TRUSTED),
    "cloud_manager": ("Company1", "CompanyB"),
    "trusted": (TRUSTED, TRUSTED),
}
CONSULTANT, CHOICE, CLOSED = "consultant", "Company2", "Company1"
AT: dict[str, Level] = {"qi": ("Company1", NOTHING), "qj": (TRUSTED, NOTHING)}
EVERYTHING = "messages"
Row = tuple[object, ...]


@dataclass
class Cloud(Cast):
    """The people, and what each reader has to get of each output."""

    levels: dict[str, Level] = field(default_factory=dict)
    expected: dict[tuple[str, str], set[Row]] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)

    def admit(self) -> None:
        """Conflict classes, a log whose tuples have the level of their sender, and the people."""
        admin = self.begin()
        for name, companies in CONFLICT_CLASSES.items():
            admin.run("conflict-class", "add", name, *companies)
        admin.run("schema", "add", "log", *SCHEMA)
        rules = [part for name in CONFLICT_CLASSES for part in ("--company", f"{name}=SENDER")]
        options = ("--event-time", "timestamp", "--time", "data", *rules)
        admin.run("stream", "add", LOG, "--schema", "log", *options)
        for role, permissions in {"company": ("SEND",), "manager": ("READ TUPLE",)}.items():
            admin.run("role", "add", role)
            admin.run("grant", role, "VIEW OBJECT", *permissions, "stream", LOG)
            admin.run("grant", role, "VIEW OBJECT", "schema", "log")
            for name in CONFLICT_CLASSES:
                admin.run("grant", role, "VIEW OBJECT", "conflict-class", name)
        admin.run("grant", "manager", "ADD QUERY", "system")
        for companies in CONFLICT_CLASSES.values():
            for company in companies:
                self.join(company, ["company"])
                self.set_level(company, _level_of(company))
        for name, level in READERS.items():
            self.join(name, ["manager"])
            self.set_level(name, level)
        self.join(CONSULTANT, ["manager"])
        admin.run("wall", "set", "COI1", CONSULTANT, "--choice")
        admin.run("wall", "set", "COI2", CONSULTANT, "_")
        self.say("five companies, four readers at four levels, and a consultant are there")

    def set_level(self, name: str, level: Level) -> None:
        """The level of a user, class by class."""
        for conflict_class, part in zip(CONFLICT_CLASSES, level, strict=True):
            self.people["admin"].run("wall", "set", conflict_class, name, part)
        self.levels[name] = level

    def query(self) -> None:
        """One query for all, and the same text at two levels."""
        trusted = self.people["trusted"]
        self._add(EVERYTHING, ALL)
        for name, level in AT.items():
            self._add(name, f"AT LEVEL [{level[0]}, {level[1]}] {COUNT}")
        refused = self.people["auditor1"].attempt(
            *("query", "add", "above", "-", "--language", "sql"), text=f"AT LEVEL [T, _] {COUNT}"
        )
        if refused.returncode == 0:
            raise DeployError("auditor1 may run a query above its level")
        for output in (EVERYTHING, *AT):
            trusted.run("grant", "manager", "VIEW OBJECT", "SUBSCRIBE", "output", output)
        for name in READERS:
            for output in (EVERYTHING, *AT):
                self._read(name, output)
        self.choose()
        self.await_fed()
        self.say("all read one query, and two that have one text and run at two levels")

    def choose(self) -> None:
        """The consultant must choose a company, and then the other one is closed."""
        person, wanted = self.people[CONSULTANT], ("--company", f"COI1={CHOICE}")
        for options in ((), ("--company", f"COI1={CLOSED}")):
            if options:
                self._read(CONSULTANT, EVERYTHING, *wanted)
                self.levels[CONSULTANT] = (CHOICE, NOTHING)
            folder = str(person.folder / f"refused{len(options)}")
            done = person.attempt("subscribe", EVERYTHING, "--dir", folder, "--no-wait", *options)
            if done.returncode == 0:
                raise DeployError(f"the consultant may subscribe with {options or 'no choice'}")
        self.say(f"the consultant has chosen {CHOICE}, and that has closed {CLOSED}")

    def send(self, minute: int) -> None:
        """What all companies audit in a minute, and what each reader gets of it."""
        new = messages(minute)
        # One after the other, so that they come in the order of time.
        for message in [*new, clock(minute)]:
            self.produce(message.by, LOG, [message.record()])
        self.sent += [*new, clock(minute)]
        clocks = self._clocks()
        for reader, output in self.listeners:
            level = self.levels[reader]
            if output == EVERYTHING:
                self.expected[reader, output] |= set(all_messages(new, level))
            elif dominated(AT[output], level):
                rows = counts(self.sent, AT[output])
                self.expected[reader, output] |= {row for row in rows if row[0] not in clocks}
        for each in self.listeners:
            for _ in patiently(f"the results came to {each[0]}"):
                if self.rows(each) >= self.expected[each]:
                    break
        self.say(f"everybody got the messages of minute {minute} that they may see")

    def rows(self, reader: tuple[str, str]) -> set[Row]:
        """What has come to a reader, without what the clock's messages give."""
        clocks = self._clocks()
        found = {_row(reader[1], each) for each in tuple(self.listeners[reader].deliveries)}
        return {row for row in found if row[0] not in clocks}

    def _clocks(self) -> set[object]:
        return {each.at for each in self.sent if each.is_clock}

    def _add(self, name: str, text: str) -> None:
        self.people["trusted"].run("query", "add", name, "-", "--language", "sql", text=text)

    def _read(self, name: str, output: str, *options: str) -> None:
        self.listen(name, output, *options)
        self.expected[name, output] = set()


def main(stack: Stack) -> int:
    """Play the story on `stack`, which runs; 0 only if exactly the right results arrived."""
    console, started = Console(), time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:6.1f} s[/] {text}")

    with _cloud(stack, say) as cloud:
        cloud.admit()
        cloud.query()
        cloud.send(0)
        cloud.send(1)
        return 0 if report(console, cloud) else 1


def report(console: Console, cloud: Cloud) -> bool:
    """Print who received what and whether it is right."""
    table = Table("who", "level", "reads", "at level", "results", "expected", "right")
    all_right = True
    for reader, expected in cloud.expected.items():
        rows = cloud.rows(reader)
        all_right &= rows == expected
        level = AT.get(reader[1])
        table.add_row(
            *(reader[0], _printed(cloud.levels[reader[0]]), reader[1]),
            *(_printed(level) if level else "", str(len(rows)), str(len(expected))),
            "yes" if rows == expected else "[bold]NO[/]",
        )
    console.print(table)
    return all_right


@contextmanager
def _cloud(stack: Stack, say: Callable[[str], None]) -> Iterator[Cloud]:
    cloud = Cloud(stack, say)
    try:
        yield cloud
    finally:
        cloud.close()


def _level_of(company: str) -> Level:
    return (company, NOTHING) if company in CONFLICT_CLASSES["COI1"] else (NOTHING, company)


def _printed(level: Level) -> str:
    return f"\\[{level[0]}, {level[1]}]"


def _row(output: str, delivery: Delivery) -> Row:
    value = delivery.value
    if output == EVERYTHING:
        at = datetime.fromisoformat(str(value["timestamp"]))
        return at, value["sender"], value["receiver"], value["level"]
    return datetime.fromisoformat(str(value["instant"])), value["many"]
