"""The scenario, act by act; the demonstration and the integration test both play it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from deploy.errors import DeployError
from deploy.quotes import Quote, between, load_quotes, write_json_lines
from deploy.scenario.expectation import Week, expected_weeks
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.stack import Stack

Q1 = Path(__file__).with_name("q1.xml")
SCHEMA = ("day:timestamp!", "symbol:string!", "open:double!", "high:double", "low:double")
ROLES = {"joe": "ADMIN", "ed": "INFO PROVIDER", "al": "CUSTOMER1", "bob": "CUSTOMER2"}
FED_TIMEOUT_S = 180.0
# Shorter than usual: the story waits for new classes, and nobody looks at its latency.
BATCH_MS = 5_000
PARKED = {"fetch.wait.max.ms": 60_000, "fetch.min.bytes": 10_000_000, "socket.timeout.ms": 90_000}


@dataclass
class Story:
    """Who is there, what was sent, and who listens. `say` tells the audience what happens."""

    stack: Stack
    say: Callable[[str], None]
    people: dict[str, Person] = field(default_factory=dict)
    quotes: dict[str, tuple[Quote, ...]] = field(default_factory=load_quotes)
    sent: dict[str, list[Quote]] = field(default_factory=lambda: {"in1": [], "in2": []})
    listeners: dict[str, Listener] = field(default_factory=dict)
    fenced_at: int = 0

    def close(self) -> None:
        """Stop all listeners."""
        for listener in self.listeners.values():
            listener.close()

    def admit(self) -> None:
        """The first administrator makes the users and roles of figure 8."""
        admin = Person.at(self.stack, "admin")
        admin.log_in(self.stack.settings.secadmin.first_password_file.read_text().strip())
        for name, role in ROLES.items():
            one_time = admin.ask("user", "add", name)["password"]
            if role != "ADMIN":
                admin.run("role", "add", role)
                admin.run("grant", role, "VIEW CATALOG", "system")
            admin.run("user", "assign", name, role)
            self.people[name] = Person.at(self.stack, name)
            self.people[name].log_in(one_time)
        admin.run("grant", "CUSTOMER1", "ADD QUERY", "system")
        self.say("Joe (ADMIN), Ed (INFO PROVIDER), Al (CUSTOMER1) and Bob (CUSTOMER2) log in")

    def define(self) -> None:
        """Joe adds the schema and both streams and grants them (figure 8)."""
        joe = self.people["joe"]
        joe.run("schema", "add", "s", *SCHEMA, "close:double!", "volume:bigint!")
        for stream in ("in1", "in2"):
            timed = ("--event-time", "day", "--time", "data")
            joe.run("stream", "add", stream, "--schema", "s", *timed)
        for role, rights in (("CUSTOMER1", ["READ TUPLE"]), ("INFO PROVIDER", ["SEND"])):
            joe.run("grant", role, "VIEW OBJECT", "schema", "s")
            for stream in ("in1", "in2"):
                joe.run("grant", role, "VIEW OBJECT", *rights, "stream", stream)
        self.say("Joe adds schema s and streams in1 and in2, and grants them to Al and Ed")
        _expect(self.people["ed"].catalog(), ["in1", "in2", "s"], "Ed's catalog")

    def query(self) -> None:
        """Al adds q1 and subscribes to its output (figure 9)."""
        al = self.people["al"]
        _expect(al.catalog(), ["in1", "in2", "s"], "Al's catalog")
        al.run("query", "add", "q1", str(Q1))
        _expect(al.catalog(), ["in1", "in2", "out1", "q1", "s"], "Al's catalog")
        self.listeners["al"] = Listener(al.subscribe("out1")).start()
        self.wait_until_fed("al")
        self.say("Al adds q1 (union, then weekly counts) and subscribes to its output out1")

    def send(self, first_year: int, last_year: int) -> None:
        """Ed sends both markets' quotes of these years."""
        ed = self.people["ed"]
        for stream, quotes in self.quotes.items():
            chosen = between(quotes, first_year, last_year)
            file = write_json_lines(ed.folder / f"{stream}-{first_year}.jsonl", chosen)
            ed.run("produce", stream, str(file))
            self.sent[stream].extend(chosen)
        years = str(first_year) if first_year == last_year else f"{first_year} to {last_year}"
        self.say(f"Ed sends the quotes of {years}")

    def share(self) -> None:
        """Bob sees nothing until Joe and Al grant; then he subscribes (figure 10)."""
        joe, al, bob = (self.people[name] for name in ("joe", "al", "bob"))
        _expect(bob.catalog(), [], "Bob's catalog")
        joe.run("grant", "CUSTOMER2", "VIEW OBJECT", "schema", "s")
        joe.run("grant", "CUSTOMER2", "VIEW OBJECT", "READ TUPLE", "stream", "in1")
        al.run("grant", "CUSTOMER2", "VIEW OBJECT", "SUBSCRIBE", "output", "out1")
        _expect(bob.catalog(), ["in1", "out1", "s"], "Bob's catalog")
        folder = bob.subscribe("out1")
        self.wait_until_fed("bob")
        self.listeners["bob"] = Listener(folder).start()
        self.listeners["parked"] = Listener(folder, "parked", PARKED).start()
        self.say("Bob sees nothing, is granted s, in1 and out1, and subscribes")

    def revoke_while_sending(self, years: Sequence[int]) -> None:
        """Joe takes in1 from Bob while Ed goes on sending."""
        before = len(self.sent["in2"])
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(self._send_each, years)
            while len(self.sent["in2"]) == before and not sending.done():
                time.sleep(0.01)
            started = time.monotonic()
            self.people["joe"].run("revoke", "CUSTOMER2", "READ TUPLE", "stream", "in1")
            took = time.monotonic() - started
            self.fenced_at = self._end_of(self.bobs_topic())
            sending.result()
        self.say(f"While Ed sends on, Joe takes in1 from Bob: the command took {took:.2f} s")

    def _send_each(self, years: Sequence[int]) -> None:
        for year in years:
            self.send(year, year)

    def restore(self) -> None:
        """Joe grants in1 again, and Bob reads on."""
        self.people["joe"].run("grant", "CUSTOMER2", "READ TUPLE", "stream", "in1")
        self.say("Joe grants in1 to Bob again, and Bob reads on")

    def bobs_topic(self) -> str:
        """The topic of Bob's delivery class, as his consumer has seen it."""
        return self.listeners["bob"].deliveries[0].topic

    def expected(self) -> list[Week]:
        """All results of q1 over what was sent so far, computed in plain Python."""
        return expected_weeks(self.sent)

    def wait_until_fed(self, name: str) -> None:
        """Wait until the platform says that results are delivered to this subscription."""
        deadline = time.monotonic() + FED_TIMEOUT_S
        while not all(row["fed"] for row in self.people[name].ask("accesses")):
            if time.monotonic() > deadline:
                raise DeployError(f"{name}'s subscription gets nothing; see the engines' logs")
            time.sleep(0.1)

    def _end_of(self, topic: str) -> int:
        """The offset of the next record, asked as the platform's administrator."""
        kafka = self.stack.settings.kafka
        admin = AdminClient({**kafka.client_config(kafka.secadmin), "log_level": 0})
        place = TopicPartition(topic, 0)
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return int(admin.list_offsets({place: latest})[place].result().offset)


def _expect(found: Sequence[str], wanted: Sequence[str], what: str) -> None:
    if list(found) != list(wanted):
        raise DeployError(f"{what} should be {list(wanted)} and is {list(found)}")
