"""Role expressions on the whole platform: each record reaches whom its own expression allows.

Patients' devices send numbered records. Each record says which roles may see it, or its sender has
a policy. Nurses, doctors and doctors of the intensive care unit read one query at the same time.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from catalog.engines import INGEST
from catalog.role_expression import read_role_expression
from deploy.runtime import Runtime
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from tests.integration.flowing import PAUSE_S, Reader, Typist, await_that, now_text, sender_of

WINDOW_S = 2
EACH, COUNTS = "each", "counts"
QUERIES = {
    EACH: "SELECT stream, n FROM vitals",
    COUNTS: "SELECT stream, MIN(n) AS low, MAX(n) AS high, COUNT(*) AS many FROM vitals "
    f"GROUP BY TUMBLE(ts, INTERVAL '{WINDOW_S}' SECOND), stream",
}
SCHEMA = ("ts:timestamp!", "stream:string!", "n:bigint!", "allowed:string")
ROLES = ("doctor", "nurse", "icu")
PEOPLE = {
    "dan": ("doctor",),
    "nina": ("nurse",),
    "dora": ("doctor", "icu"),
    "noah": (),
    "dean": ROLES,
}
TEXTS = (
    *("doctor", "nurse", "doctor | nurse", "doctor & icu", "(doctor & icu) | nurse"),
    *("doctor | nurse", "icu & (icu | nurse)"),
)
REFUSED = {"surgeon": "no role of that name", "doctor &": "its end is not expected"}


@dataclass
class Hospital:
    """Who is there. `sent` has the expression of each record, by its number."""

    stack: Stack
    admin: Person
    producers: Mapping[str, tuple[Producer, str]]
    readers: dict[str, Reader] = field(default_factory=dict)
    sent: dict[int, str] = field(default_factory=dict)

    def send(self, text: str, stream: str = "vitals") -> int:
        """Send a record with that expression; gives its number."""
        number = len(self.sent)
        self.sent[number] = text
        value = {"ts": now_text(), "stream": stream, "n": number, "allowed": text}
        producer, topic = self.producers[stream]
        producer.produce(topic, json.dumps(value).encode())
        producer.flush()
        return number

    def allowed(self, name: str) -> set[int]:
        """The numbers of the records that this person may see, as the expressions say."""
        roles = set(PEOPLE[name])
        readable = {n: text for n, text in self.sent.items() if text not in REFUSED}
        return {n for n, text in readable.items() if read_role_expression(text).allows(roles)}


@pytest.fixture
def hospital(runtime: Runtime, tmp_path: Path) -> Iterator[Hospital]:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        admin = Typist.administrator(stack)
        attributes = ("ts:timestamp!", "stream:string!", "n:bigint!", "allowed:string")
        admin.run("schema", "add", "s", *attributes)
        for role in ROLES:
            admin.run("role", "add", role)
        rule = ("--label-rule", "allowed")
        admin.run("stream", "add", "vitals", "--schema", "s", "--event-time", "ts", *rule)
        admin.run("grant", "ADMIN", "SEND", "stream", "vitals")
        folder = admin.folder / "sender"
        admin.run("sender", "vitals", "--dir", str(folder))
        made = Hospital(stack, admin, {"vitals": sender_of(folder)})
        for name, text in QUERIES.items():
            admin.run("query", "add", name, "-", "--language", "sql", text=text)
        try:
            for name, roles in PEOPLE.items():
                let_read(made, name, roles)
            for reader in made.readers.values():
                await_that(reader.is_fed, "its class is fed")
            yield made
        finally:
            for reader in made.readers.values():
                reader.listener.close()


def let_read(hospital: Hospital, name: str, roles: tuple[str, ...]) -> None:
    """A new user with these roles, and with the right to read the stream by one of its own."""
    admin = hospital.admin
    one_time = admin.ask("user", "add", name)["password"]
    admin.run("role", "add", f"staff-{name}")
    admin.run("grant", f"staff-{name}", "READ TUPLE", "stream", "vitals")
    for output in QUERIES:
        admin.run("grant", f"staff-{name}", "VIEW OBJECT", "SUBSCRIBE", "output", output)
    for role in (f"staff-{name}", *roles):
        admin.run("user", "assign", name, role)
    person = Typist.at(hospital.stack, name)
    person.log_in(one_time)
    hospital.readers[name] = Reader.begin(person, EACH)


@pytest.mark.long
def test_each_record_reaches_whom_its_expression_allows(hospital: Hospital) -> None:
    readers, admin = hospital.readers, hospital.admin
    readers["windows"] = windows = Reader.begin(readers["dean"].person, COUNTS)
    await_that(windows.is_fed, "its class is fed")
    for text in (*TEXTS, *TEXTS, *REFUSED):
        hospital.send(text)
    for name in PEOPLE:
        wanted = hospital.allowed(name)
        await_that(partial(came, readers[name], wanted), f"all came to {name}")
    assert hospital.allowed("noah") == set()
    mine, everything = hospital.allowed("dora"), hospital.allowed("dean")
    # What is parked holds the time of the stream: windows close, and none has lost a record.
    await_that(partial(came, windows, everything), "all windows have closed")

    # A role is taken away: nothing comes by it any more, and all else goes on.
    admin.run("user", "unassign", "dora", "icu")
    after = {hospital.send(text) for text in TEXTS}
    for name in ("dan", "nina", "dean"):
        wanted = hospital.allowed(name)
        await_that(partial(came, readers[name], wanted), f"all came to {name}")
    for name in ("dan", "nina", "noah", "dean"):
        assert readers[name].numbers("vitals") == hospital.allowed(name), name
    assert readers["dora"].numbers("vitals") == mine
    assert not mine & after

    # A removed role is an unknown one. Its records are refused, and others are not.
    admin.run("role", "remove", "nurse")
    gone, known = (hospital.send(text) for text in ("doctor | nurse", "doctor"))
    await_that(partial(came, readers["dan"], {known}), "a known expression")
    assert gone not in readers["dan"].numbers("vitals")


@pytest.mark.long
def test_nothing_is_lost_or_comes_twice_whatever_dies(hospital: Hospital) -> None:
    """New expressions come all the time, while SecAdmin, ingest and the engines are killed."""
    sending = Sending(hospital).start()
    for kill in (kill_secadmin, kill_ingest, kill_both):
        sending.await_more()
        kill(hospital.stack)
    sending.await_more()
    sending.stop()
    for name in PEOPLE:
        wanted = hospital.allowed(name)
        await_that(partial(came, hospital.readers[name], wanted), f"all came to {name}")
    for name, reader in hospital.readers.items():
        assert reader.numbers("vitals") == hospital.allowed(name), name
        # What comes again has its id again. So a tuple that is in lab twice would show here.
        ids = {(each.value["n"], each.id) for each in tuple(reader.arrivals)}
        assert len(ids) == len(hospital.allowed(name)), name


def kill_secadmin(stack: Stack) -> None:
    stack.secadmin.kill()
    stack.start_secadmin()


def kill_ingest(stack: Stack) -> None:
    stack.engines[INGEST].kill()
    stack.start_engines([INGEST])


def kill_both(stack: Stack) -> None:
    stack.secadmin.kill()
    stack.kill_engines()
    stack.start_secadmin()
    stack.start_engines(stack.engines)


@dataclass
class Sending:
    """Sends records in a thread, each tenth with an expression that was not there before."""

    hospital: Hospital
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Sending:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name="send")
        self._thread.start()
        return self

    def await_more(self) -> None:
        """Wait until more records were sent."""
        enough = len(self.hospital.sent) + 100
        await_that(lambda: len(self.hospital.sent) >= enough, "records flow")

    def stop(self) -> None:
        """Stop to send."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Blanks make another text of the same meaning.
        texts = (f"{text}{' ' * blanks}" for blanks in itertools.count() for text in TEXTS)
        known = list(TEXTS)
        for number in itertools.count():
            if self._stop.wait(PAUSE_S):
                return
            if number % 10 == 0:
                known.append(next(texts))
            self.hospital.send(known[-1 - number % 7])


def came(reader: Reader, numbers: set[int]) -> bool:
    return reader.numbers("vitals") >= numbers
