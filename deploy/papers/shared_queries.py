"""The story of paper 000: patients say who may see their vitals, and all users share one query.

`python3 -m deploy demo --paper 000` plays it. Patient 1 allows doctors, patient 2 nurses (000 §3).
Two doctors, a nurse, and somebody who is both subscribe to one query, CQ1. Each gets the averages
that the patients allow. Then patient 2 allows doctors, too, and a doctor loses the role.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from deploy.errors import DeployError
from deploy.papers.cast import Cast, patiently
from deploy.papers.vitals import CQ1, SCHEMAS, Measurement, Row, answers, measured
from deploy.scenario.listener import Delivery
from deploy.stack import Stack

PATIENTS = {1: "doctor", 2: "nurse"}
READERS = {
    "dana": ("doctor",),
    "dave": ("doctor",),
    "nora": ("nurse",),
    "dean": ("doctor", "nurse"),
}
SHARED, AS_DOCTOR = "cq1", "cq1_as_doctor"
# Whose measurements move time in the end. Nobody asks for them.
_CLOCK_PATIENT = 9
# The patients send one after the other, each the measurements of two minutes and a half. What the
# first one sends moves time, and must not make those of the second one late. Eight minutes on, time
# is past all that depends on them.
_LATENESS = "160s"


@dataclass
class Ward(Cast):
    """The people, what was sent, and what each reader has to get of each output."""

    expected: dict[tuple[str, str], set[Row]] = field(default_factory=dict)

    def admit(self) -> None:
        """Users, roles, and the streams, whose senders each have a policy."""
        admin = self.begin()
        for role in ("doctor", "nurse", "patient"):
            admin.run("role", "add", role)
        for stream, attributes in SCHEMAS.items():
            admin.run("schema", "add", f"{stream}_schema", *attributes)
            timed = ("--event-time", "ts", "--time", "data", "--lateness", _LATENESS)
            options = (*timed, "--label-rule", "SENDER")
            admin.run("stream", "add", stream, "--schema", f"{stream}_schema", *options)
            admin.run("grant", "patient", "VIEW OBJECT", "SEND", "stream", stream)
            for role in ("doctor", "nurse"):
                admin.run("grant", role, "VIEW OBJECT", "READ TUPLE", "stream", stream)
                admin.run("grant", role, "VIEW OBJECT", "schema", f"{stream}_schema")
        admin.run("grant", "doctor", "ADD QUERY", "system")
        for name, roles in {**READERS, "p1": ("patient",), "p2": ("patient",)}.items():
            self.join(name, roles)
        self.say("two doctors, a nurse, somebody who is both, and two patients are there")

    def set_policy(self, patient: int, expression: str) -> None:
        """A patient says who may see what it sends from now on."""
        for stream in SCHEMAS:
            self.people[f"p{patient}"].run("policy", "sender", stream, expression)
        self.say(f"patient {patient} allows: [bold]{expression}[/]")

    def query(self) -> None:
        """One query for all, and one that a user with two roles runs as a doctor."""
        admin, dean = self.people["admin"], self.people["dean"]
        admin.run("query", "add", SHARED, "-", "--language", "sql", text=CQ1)
        for role in ("doctor", "nurse"):
            admin.run("grant", role, "VIEW OBJECT", "SUBSCRIBE", "output", SHARED)
        dean.run("query", "add", AS_DOCTOR, "-", "--language", "sql", text=f"AS doctor {CQ1}")
        for name in READERS:
            self._read(name, SHARED)
        self._read("dean", AS_DOCTOR)
        self.await_fed()
        topics = {name: self.topics(name, SHARED) for name in READERS}
        if topics["dana"] != topics["dave"]:
            raise DeployError("two doctors read different topics, and have equal rights")
        self.say("all read one query; dana and dave share one topic of it")

    def send(self, minutes: int, allowed: dict[int, tuple[tuple[str, str], ...]]) -> None:
        """Both patients' measurements of some minutes, and what `allowed` readers get of them."""
        sent = {stream: list[Measurement]() for stream in SCHEMAS}
        for patient, readers in allowed.items():
            for stream, measurements in measured(patient, minutes).items():
                self._produce(patient, stream, measurements)
                sent[stream] += measurements
            for reader in readers:
                self.expected[reader] |= answers(sent, patient)
        for stream, measurements in measured(_CLOCK_PATIENT, minutes + 8, 1).items():
            self._produce(1, stream, measurements)
        for reader in self.listeners:
            self._await_rows(reader)
        self.say(f"everybody got the measurements of minute {minutes} that they may see")

    def take_role(self, name: str, role: str) -> None:
        """A user loses a role. Nothing comes by it any more."""
        self.people["admin"].run("user", "unassign", name, role)
        self.say(f"{name} is no {role} any more")

    def rows(self, reader: tuple[str, str]) -> set[Row]:
        """What has come to a reader of the patients' averages."""
        found = (_row(each) for each in tuple(self.listeners[reader].deliveries))
        return {row for row in found if row[0] in PATIENTS}

    def _produce(self, patient: int, stream: str, measurements: list[Measurement]) -> None:
        self.produce(f"p{patient}", stream, [each.record() for each in measurements])

    def _read(self, name: str, output: str) -> None:
        self.listen(name, output)
        self.expected[name, output] = set()

    def _await_rows(self, reader: tuple[str, str]) -> None:
        for _ in patiently(f"the results came to {reader[0]}"):
            if self.rows(reader) >= self.expected[reader]:
                break


def main(stack: Stack) -> int:
    """Play the story on `stack`, which runs; 0 only if exactly the right averages arrived."""
    console, started = Console(), time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:6.1f} s[/] {text}")

    with _ward(stack, say) as ward:
        play(ward)
        return 0 if report(console, ward) else 1


def play(ward: Ward) -> None:
    """All acts."""
    ward.admit()
    for patient, expression in PATIENTS.items():
        ward.set_policy(patient, expression)
    ward.query()
    both, as_doctor = ("dean", SHARED), ("dean", AS_DOCTOR)
    doctors = (("dana", SHARED), ("dave", SHARED), both, as_doctor)
    nurses = (("nora", SHARED), both)
    ward.send(0, {1: doctors, 2: nurses})
    ward.set_policy(2, "doctor | nurse")
    ward.send(20, {1: doctors, 2: (*doctors, *nurses)})
    ward.take_role("dave", "doctor")
    left = tuple(each for each in doctors if each[0] != "dave")
    ward.send(40, {1: left, 2: (*left, *nurses)})


def report(console: Console, ward: Ward) -> bool:
    """Print who received what and whether it is right."""
    table = Table("who", "reads", "patient 1", "patient 2", "expected", "right")
    all_right = True
    for reader, expected in ward.expected.items():
        rows = ward.rows(reader)
        right = rows == expected
        all_right &= right
        counts = [str(sum(row[0] == patient for row in rows)) for patient in PATIENTS]
        table.add_row(*reader, *counts, str(len(expected)), "yes" if right else "[bold]NO[/]")
    console.print(table)
    return all_right


@contextmanager
def _ward(stack: Stack, say: Callable[[str], None]) -> Iterator[Ward]:
    ward = Ward(stack, say)
    try:
        yield ward
    finally:
        ward.close()


def _row(delivery: Delivery) -> Row:
    value = delivery.value
    pulse, systolic, diastolic = (
        round(float(value[name]), 6) for name in ("pulse", "systolic", "diastolic")
    )
    return int(value["patID"]), pulse, systolic, diastolic
