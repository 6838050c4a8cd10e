"""Roles, levels and walls change while data flow, from several sessions at once (000 §4, 001 §3).

Each record says which roles may see it and of which company it is. Administrators and users change
roles, juniors, permissions, levels, walls and sessions in bursts, and between the bursts it is calm
until all that reads is fed. Each access is read by an honest client and by hostile ones. In the end
the audit log is played into a model, and says for each record and access whether it had to come,
could come, or must not have come.
"""

from __future__ import annotations

import json
import os
import secrets
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from deploy.runtime import Runtime
from deploy.scenario.listener import read_settings
from deploy.scenario.person import Person
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from secadmin.kafka.principals import Credentials
from tests.integration.flowing import Typist
from tests.integration.serial.clients import Party, Watch
from tests.integration.serial.judging import Call, Spans, due, leaks, spans_of
from tests.integration.serial.model import (
    COMPANIES,
    CONFLICT_CLASS,
    MARKS,
    OUTPUT,
    STREAM,
    Entry,
    Model,
    mark_of,
)
from tests.integration.serial.people import READER, VIEWER, Bosses, Caller, User, steps
from tests.integration.service.revocations.ledger import Reception
from tests.integration.service.revocations.watching_client import Subscription
from tests.lanes import number_of

pytestmark = pytest.mark.long

SEED = os.environ.get("SERIAL_SEED") or secrets.token_hex(4)
ROUNDS = number_of("SERIAL_ROUNDS", sample=4, long=12)
# So many that a kind of change of which none was drawn is missing.
ENOUGH = 12
NAMES, BOSSES = ("ann", "bea", "cid"), ("boss1", "boss2", "boss3")
KEEPER, STRANGER = "still", "shut"
PASSWORD = "correct horse battery"
PAUSE_S, CALM_S, PATIENCE_S = 1 / 40, 3.0, 180.0
# How long before a right is taken a record must have come to who keeps all of them.
SLACK_S = 5.0
MOST_STEPS = 3
_PAGE = 1_000
# Clients of an access that has ended go on to try for so many rounds.
ROUNDS_ON = 2


@dataclass
class Flow:
    """Sends numbered records all the time; `sent` has when each was sent (monotonic seconds)."""

    producer: Producer
    topic: str
    sent: list[float] = field(default_factory=list)
    _over: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread = Thread(target=self._run, name="flow", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop to send, and wait until all is acknowledged."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        assert self.producer.flush(60) == 0

    def send(self) -> None:
        """Send the next record."""
        number, now = len(self.sent), time.time()
        mark, second = mark_of(number), time.gmtime(now)
        value = {
            "ts": time.strftime("%Y-%m-%dT%H:%M:%S", second) + f".{now % 1 * 1e6:06.0f}Z",
            "note": f"<number {number}>",
            "allowed": mark.expression,
            "firm": mark.company,
        }
        self.sent.append(time.monotonic())
        self.producer.produce(self.topic, json.dumps(value).encode())
        self.producer.poll(0)

    def _run(self) -> None:
        while not self._over.wait(PAUSE_S):
            self.send()


@dataclass
class Ward:
    """The platform, who reads there, and what was called."""

    stack: Stack
    flow: Flow
    folder: Path
    client: httpx.Client
    calls: list[Call] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    parties: dict[str, Party] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def caller(self, name: str) -> Caller:
        return Caller(self.client, name, PASSWORD, self.calls)

    def begin(self, name: str, credentials: Credentials) -> None:
        """Let clients read by a new access."""
        settings = self.stack.settings.kafka
        own = Subscription(settings, credentials, "", OUTPUT, self.folder)
        with self.lock:
            self.owners[credentials.username] = name
            self.parties[credentials.username] = Party.begin(own, self.topics)

    def topics(self) -> Collection[str]:
        """All topics that anybody has read."""
        with self.lock:
            return tuple(self.known)

    def seen(self, principal: str, topics: Collection[str]) -> None:
        """An access has these topics now."""
        with self.lock:
            self.known |= set(topics)
            if principal in self.parties:
                self.parties[principal].take(topics)

    def party_of(self, name: str) -> Party:
        """All that reads by the only access of that user."""
        (principal,) = (each for each, owner in self.owners.items() if owner == name)
        return self.parties[principal]

    def came(self) -> dict[int, float]:
        """The numbers that have come to who keeps all rights, with the time when each did."""
        first: dict[int, float] = {}
        for one in tuple(self.party_of(KEEPER).honest.received):
            first.setdefault(one.number, one.at)
        return first

    def await_fed(self) -> None:
        """Wait until all that reads is fed, as was asked from now on."""
        since = time.monotonic()
        looks = [watch.looks for watch in self.watches]
        patiently(lambda: all(w.looks > n + 1 for w, n in zip(self.watches, looks, strict=True)))
        patiently(lambda: all(watch.are_fed(since) for watch in self.watches))

    def entries(self, caller: Caller) -> list[Entry]:
        """What the audit log says that was changed, with times of this process's clock."""
        found: list[dict[str, Any]] = []
        # Each reading is an entry, too, so there is always a newer one.
        whole = True
        while whole:
            after = found[-1]["seq"] if found else 0
            page = caller.ask(f"/audit?after={after}&limit={_PAGE}")
            found += page
            whole = len(page) == _PAGE
        offset = time.monotonic() - time.time()
        return [
            Entry(
                row["seq"],
                datetime.fromisoformat(row["at"]).timestamp() + offset,
                *(row["actor"], row["action"], row["object"], row["detail"]),
            )
            for row in found
            if row["outcome"] == "changed"
        ]

    def close(self) -> None:
        """Everybody stops."""
        self.flow.close()
        for watch in self.watches:
            watch.close()
        for party in self.parties.values():
            party.end()
        for party in self.parties.values():
            party.join()


def patiently(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not become so in time"
        time.sleep(0.1)


@pytest.fixture
def ward(runtime: Runtime, tmp_path: Path) -> Iterator[Ward]:
    print(f"SERIAL_SEED={SEED} repeats what was drawn here")
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with ExitStack() as ending:
        stack = ending.enter_context(Stack(options, runtime))
        admin = Typist.administrator(stack)
        flow = _stream(admin)
        trusted = ssl.create_default_context(cafile=str(stack.settings.secadmin.ca_file))
        limits = httpx.Limits(keepalive_expiry=2)
        where: dict[str, Any] = {"base_url": stack.secadmin_url, "verify": trusted}
        client = ending.enter_context(httpx.Client(timeout=120, limits=limits, **where))
        folder = tmp_path / "clients"
        folder.mkdir()
        made = Ward(stack, flow, folder, client)
        ending.callback(made.close)
        _people(made, admin)
        yield made


def _stream(admin: Person) -> Flow:
    """A stream whose records say who may see them, and a query over it."""
    admin.run("conflict-class", "add", CONFLICT_CLASS, *COMPANIES)
    for role in ("doctor", "nurse", READER, VIEWER):
        admin.run("role", "add", role)
    attributes = ("ts:timestamp!", "note:string!", "allowed:string", "firm:string")
    admin.run("schema", "add", "s", *attributes)
    rules = ("--label-rule", "allowed", "--company", f"{CONFLICT_CLASS}=firm")
    admin.run("stream", "add", STREAM, "--schema", "s", "--event-time", "ts", *rules)
    admin.run("grant", "ADMIN", "SEND", "stream", STREAM)
    admin.run("grant", READER, "READ TUPLE", "stream", STREAM)
    for role in ("ADMIN", READER):
        admin.run("grant", role, "VIEW OBJECT", "conflict-class", CONFLICT_CLASS)
    folder = admin.folder / "sender"
    admin.run("sender", STREAM, "--dir", str(folder))
    text = f"SELECT note FROM {STREAM}"
    admin.run("query", "add", OUTPUT, "-", "--language", "sql", text=text)
    admin.run("grant", VIEWER, "VIEW OBJECT", "SUBSCRIBE", "output", OUTPUT)
    for kind, name in (("stream", STREAM), ("output", OUTPUT)):
        # The administrators did not add it, and change its rights.
        admin.run("grant", "ADMIN", "VIEW OBJECT", "CHANGE PERM", kind, name)
    settings = {**read_settings(folder / "librdkafka.conf"), "log_level": 0}
    topic = json.loads((folder / "sender.json").read_text())["topic"]
    return Flow(Producer(settings), topic)


def _people(ward: Ward, admin: Person) -> None:
    """Users and administrators; one user keeps all rights, and one never has any level or role."""
    for name in BOSSES:
        _add_user(ward, admin, name, "ADMIN")
    for name in NAMES:
        admin.run("role", "add", f"own-{name}")
        for junior in (READER, VIEWER, "doctor"):
            admin.run("role", "junior", f"own-{name}", junior)
        home = _add_user(ward, admin, name, f"own-{name}")
        ward.users.append(User(home, ward.caller(name), ward.begin))
    admin.run("wall", "set", CONFLICT_CLASS, "ann", "T")
    admin.run("wall", "set", CONFLICT_CLASS, "bea", "--choice")
    for name, roles in ((KEEPER, ("doctor", "nurse")), (STRANGER, ())):
        # Nobody changes these roles' rights.
        admin.run("role", "add", f"own-{name}")
        admin.run("grant", f"own-{name}", "READ TUPLE", "stream", STREAM)
        admin.run("grant", f"own-{name}", "VIEW OBJECT", "SUBSCRIBE", "output", OUTPUT)
        for role in roles:
            admin.run("role", "junior", f"own-{name}", role)
        caller = _add_user(ward, admin, name, f"own-{name}")
        if name == KEEPER:
            admin.run("wall", "set", CONFLICT_CLASS, name, "T")
        path = f"/outputs/{OUTPUT}/subscriptions"
        given = caller.do("access: output", "POST", path, keep=True, choices={})
        ward.begin(name, Credentials(given["principal"], given["secret"]))
        ward.watches.append(Watch(caller, ward.seen))
    ward.watches += [Watch(user.home, ward.seen) for user in ward.users]
    for watch in ward.watches:
        watch.start()


def _add_user(ward: Ward, admin: Person, name: str, role: str) -> Caller:
    """A new user with that role, in a session."""
    one_time = admin.ask("user", "add", name)["password"]
    first = Caller(ward.client, name, one_time, [])
    first.log_in()
    first.do("change password", "POST", "/password", old=one_time, new=PASSWORD)
    admin.run("user", "assign", name, role)
    made = ward.caller(name)
    made.log_in()
    return made


@dataclass
class Bursts:
    """Several threads change everything at once; then it is calm until all is fed."""

    ward: Ward
    bosses: Bosses
    ended: dict[str, int] = field(default_factory=dict)

    def play(self, number: int) -> None:
        """One burst, and the calm after it."""
        every = steps(self.ward.users, self.bosses)

        def repeat(place: int) -> None:
            chance = Random(f"{SEED}-{number}-{place}")
            for _ in range(chance.randint(1, MOST_STEPS)):
                time.sleep(chance.uniform(0, 0.5))
                every[place](chance)

        with ThreadPoolExecutor(len(every)) as pool:
            for done in [pool.submit(repeat, place) for place in range(len(every))]:
                done.result()
        self.ward.await_fed()
        calm = time.monotonic()
        patiently(lambda: self._all_came_until(calm))
        patiently(lambda: time.monotonic() > calm + CALM_S)
        self._retire(number)

    def _all_came_until(self, at: float) -> bool:
        """Whether the records that were sent until then have come to who keeps all rights."""
        sent = self.ward.flow.sent
        newest = max(self.ward.came(), default=-1)
        return newest >= 0 and sent[newest] >= at

    def _retire(self, number: int) -> None:
        """Let the clients of accesses that ended long ago end."""
        live = {each for watch in self.ward.watches for each in watch.live}
        for principal, party in self.ward.parties.items():
            if principal in live:
                self.ended.pop(principal, None)
            elif self.ended.setdefault(principal, number) == number - ROUNDS_ON:
                party.end()


@dataclass(frozen=True)
class Verdict:
    """What must have come, and what must not have come, by principal."""

    missing: dict[str, set[int]]
    leaked: dict[str, list[Reception]]
    due: int


def judge(ward: Ward, spans: Spans) -> Verdict:
    """Compare what has come with the serial history. Who was retired may have missed records."""
    sent, came = ward.flow.sent, ward.came()
    fed = {name: at for watch in ward.watches for name, at in watch.fed.items()}
    missing: dict[str, set[int]] = {}
    wanted_at_all = 0
    for principal, party in ward.parties.items():
        wanted = due(spans, principal, fed.get(principal, ()), sent, came, SLACK_S)
        wanted_at_all += len(wanted)
        got = {one.number for one in tuple(party.honest.received)}
        if lost := wanted - got:
            missing[principal] = lost
    found = {each: leaks(spans, each, p.received(), sent) for each, p in ward.parties.items()}
    return Verdict(missing, {name: rows for name, rows in found.items() if rows}, wanted_at_all)


def test_all_that_changes_at_once_is_one_serial_history(ward: Ward) -> None:
    of_roles, of_walls, of_permissions = (ward.caller(name) for name in BOSSES)
    for boss in (of_roles, of_walls, of_permissions):
        boss.log_in()
    bursts = Bursts(ward, Bosses(of_roles, of_walls, of_permissions, ward.users))
    # Each expression is seen once before.
    for _ in MARKS:
        ward.flow.send()
    ward.await_fed()
    patiently(lambda: ward.came().keys() >= set(range(len(MARKS))))
    ward.flow.start()
    for number in range(ROUNDS):
        bursts.play(number)
        print(f"round {number}: {len(ward.flow.sent)} sent, {len(ward.parties)} accesses")
    ward.flow.close()
    everything = set(range(len(ward.flow.sent)))
    patiently(lambda: ward.came().keys() >= everything)

    assert of_roles.ask("/audit/verify")["intact"]
    entries = ward.entries(of_roles)
    spans, model = spans_of(entries, ward.calls)
    verdict = _settled(ward, spans)
    told = {name: ward.owners[name] for name in (*verdict.leaked, *verdict.missing)}
    assert not verdict.leaked, f"{told}: {_first(verdict.leaked)}"
    _expect_the_model(ward, model)
    changed = {entry.action for entry in entries}
    print(f"{verdict.due} records had to come by {len(ward.parties)} accesses; {sorted(changed)}")
    assert verdict.due > len(everything), "not only who keeps all rights has to get records"
    assert not ward.party_of(STRANGER).received(), "who has no role and no level gets nothing"
    if ROUNDS >= ENOUGH:
        assert changed >= ALL_KINDS


def _settled(ward: Ward, spans: Spans) -> Verdict:
    """What is judged once nothing is missing any more. What stays missing is printed."""
    try:
        patiently(lambda: not judge(ward, spans).missing)
    except AssertionError:
        for principal, numbers in judge(ward, spans).missing.items():
            shown = [(number, ward.flow.sent[number]) for number in sorted(numbers)[:5]]
            fed = [watch.fed[principal] for watch in ward.watches if principal in watch.fed]
            print(f"{principal} of {ward.owners[principal]}: {len(numbers)} missing, {shown}")
            received = ward.parties[principal].received()
            came = {one.topic for one in received if one.number in numbers}
            print(f"  to its other clients they came from {sorted(came)}")
            print(f"  covered {spans[principal, mark_of(min(numbers))]}; fed {fed}")
        raise
    return judge(ward, spans)


ALL_KINDS = {
    *("add junior role", "remove junior role", "assign role", "unassign role", "grant", "revoke"),
    *("set level", "take level", "reset wall", "choose company"),
    *("login", "logout", "deactivate role", "access: output", "end access"),
}


def _first(leaked: dict[str, list[Reception]]) -> dict[str, Sequence[Reception]]:
    return {name: rows[:3] for name, rows in leaked.items()}


def _expect_the_model(ward: Ward, model: Model) -> None:
    """The accesses that live are those of the model, and each gets the last records or does not."""
    rows = [row for user in ward.users for row in user.home.ask("/accesses")]
    alive = {row["principal"] for row in rows}
    owned = {name for name, held in model.accesses.items() if held.user in NAMES}
    assert alive == owned
    last = range(len(ward.flow.sent) - len(MARKS), len(ward.flow.sent))
    for principal in alive & ward.parties.keys():
        got = {one.number for one in tuple(ward.parties[principal].honest.received)}
        covered = {n for n in last if mark_of(n) in model.shown(principal)}
        assert got & set(last) == covered, (ward.owners[principal], model.accesses[principal])
