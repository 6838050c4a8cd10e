"""Two SecAdmins on one database: however calls race, they end in one serial history.

The audit log is played into a plain model, entry by entry: what comes out is what the catalog says
and what Kafka allows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from catalog.audit import head
from catalog.settings import Settings
from secadmin.control.platform import Platform
from secadmin.kafka.principals import Credentials
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import secadmin_producer, until
from tests.integration.service.conftest import (
    PASSWORD,
    Api,
    add_stream,
    decided_by_postgresql,
    let_take_the_aggregate,
)
from tests.integration.service.racing.actors import Person, Referee, Services, Witness
from tests.integration.service.racing.arena import (
    Race,
    in_catalog,
    play,
    reached,
    readers,
    unfinished,
    wanted_by,
)
from tests.integration.service.racing.services import client, started

Fresh = Callable[[str], str]

pytestmark = [embedded_only, decided_by_postgresql]

SERVICES, TEAMS, ROUNDS, SECONDS = 2, 3, 5, 3.0
DECLARED = {"window_ms": 60_000, "keys": ["symbol"], "functions": ["avg"], "minimum": 5}
QUERY = """
SELECT ts, symbol, price FROM {0} UNION ALL SELECT ts, symbol, price FROM {1} UNION ALL
SELECT window_start AS ts, symbol, avg(price) AS price FROM {2}
GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), symbol
"""
# Ten seconds without a pulse, the look at it, and as much again on a busy machine.
LEASE_OVER_S = 30.0
# What a call answers that is repeated after a 503, where the change was made already.
AGAIN = (404, 409, 422)


@pytest.fixture
def race(
    admin: Api, platform: Platform, service_settings: Settings, tmp_path: Path, fresh: Fresh
) -> Iterator[Race]:
    with platform.catalog.read() as session:
        seq = head(session).seq
    streams, output = (fresh("a"), fresh("b"), fresh("c")), fresh("out")
    junior, sender = fresh("J"), fresh("S")
    for stream in streams[:2]:
        add_stream(admin, stream, fresh("s"))
    add_stream(admin, streams[2], fresh("s"), declared_aggregate=DECLARED)
    let_take_the_aggregate(admin, streams[2])
    text = QUERY.format(*streams)
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    for role in (junior, sender):
        admin.post("/roles", name=role)
    grant(admin, junior, "stream", streams[1], "VIEW OBJECT", "READ TUPLE")
    grant(admin, sender, "stream", streams[2], "SEND")
    folder = tmp_path / "services"
    with ExitStack() as stack:
        running = stack.enter_context(started(service_settings, folder, SERVICES))
        services = Services([stack.enter_context(client(each.url, folder)) for each in running])
        token, producer = str(admin.token), secadmin_producer(service_settings.kafka)
        made = Race(
            services=services,
            platform=platform,
            settings=service_settings,
            admin_token=token,
            output=output,
            streams=streams,
            junior=junior,
            sender=sender,
            seq=seq,
            producer=producer,
            processes=[each.process for each in running],
        )
        yield made


def grant(admin: Api, role: str, kind: str, name: str, *permissions: str) -> None:
    admin.post("/grants", role=role, permissions=list(permissions), kind=kind, name=name)


def new_member(race: Race, admin: Api, name: str, role: str) -> Person:
    """A user, logged in once, with a new role that may subscribe.

    It may read the first stream, and the aggregate of the last.
    """
    admin.post("/roles", name=role)
    grant(admin, role, "output", race.output, "VIEW OBJECT", "SUBSCRIBE")
    grant(admin, role, "stream", race.streams[0], "VIEW OBJECT", "READ TUPLE")
    grant(admin, role, "stream", race.streams[2], "READ AGGREGATE")
    one_time = admin.post("/users", name=name)["password"]
    admin.post(f"/users/{name}/roles", role=role)
    first = replace(race.person(name), password=one_time)
    first.log_in()
    first.do("POST", "/password", old=one_time, new=PASSWORD)
    first.log_out()
    person = race.person(name)
    person.log_in()
    return person


def subscribe(race: Race, person: Person, keep: bool) -> dict[str, Any] | None:
    """Subscribe, if that is allowed at the moment."""
    path = f"/outputs/{race.output}/subscriptions"
    given: dict[str, Any] | None = person.do("POST", path, 403, 404, keep=keep)
    return given


@pytest.fixture
def referees(race: Race, admin: Api, fresh: Fresh) -> Iterator[list[Referee]]:
    made = []
    for number in range(TEAMS):
        role = fresh(f"T{number}")
        person = new_member(race, admin, fresh("u"), role)
        given = subscribe(race, person, keep=True)
        assert given is not None
        credentials = Credentials(given["principal"], given["secret"])
        pattern = rf"^out\.{race.output}\..*"
        witness = Witness(race.settings.kafka, credentials, pattern)
        witness.start()
        referee = Referee(race.admin(role), person.name, role, race.output, witness, race.write)
        made.append(referee)
    yield made
    for referee in made:
        referee.witness.close()


@dataclass
class Others:
    """What happens while the referees judge; each thread has one of the `steps` to repeat."""

    race: Race
    roles: Sequence[str]
    readers: Sequence[str]
    traveller: Person
    settled: Person
    settled_role: str
    victim: str

    def steps(self) -> list[Callable[[], None]]:
        """One for each thread."""
        bosses = [self.race.admin(f"boss {number}") for number in range(5)]
        return [
            partial(self.change_rights, bosses[0]),
            partial(self.change_rights, bosses[1]),
            partial(self.change_hierarchy, bosses[2]),
            partial(self.move, bosses[3]),
            partial(self.let_send, bosses[4]),
            self.come_and_go,
            self.guess,
            self.guess,
        ]

    def change_rights(self, boss: Person) -> None:
        """Move a team to another class."""
        number = boss.random.randrange(3)
        right = "READ AGGREGATE" if number == 2 else "READ TUPLE"
        give, whose = boss.random.random() < 0.5, boss.random.choice(self.roles)
        boss.change_right(give, whose, right, "stream", self.race.streams[number])

    def change_hierarchy(self, boss: Person) -> None:
        """Move a team to another class, and back."""
        path = f"/roles/{boss.random.choice(self.roles)}/juniors"
        boss.do("POST", path, *AGAIN, role=self.race.junior)
        boss.do("DELETE", f"{path}/{self.race.junior}", *AGAIN)

    def let_send(self, boss: Person) -> None:
        """Take the aggregate from somebody by letting it send, and give it back now and then."""
        path = f"/users/{boss.random.choice(self.readers)}/roles"
        boss.do("POST", path, role=self.race.sender)
        if boss.random.random() < 0.7:
            boss.do("DELETE", f"{path}/{self.race.sender}", *AGAIN)

    def come_and_go(self) -> None:
        """A subscription that ends with its session."""
        subscribe(self.race, self.traveller, keep=False)
        self.traveller.log_out()
        self.traveller.log_in()

    def move(self, boss: Person) -> None:
        """A subscription that ends with a role."""
        subscribe(self.race, self.settled, keep=True)
        path = f"/users/{self.settled.name}/roles"
        boss.do("DELETE", f"{path}/{self.settled_role}", *AGAIN)
        boss.do("POST", path, role=self.settled_role)
        self.settled.log_out()
        self.settled.log_in()

    def guess(self) -> None:
        """A login that fails, and then one that is not looked at."""
        somebody = Person(self.race.services, self.victim, "", Random())
        body = {"user": self.victim, "password": "incorrect horse battery"}
        somebody.do("POST", "/login", 401, **body)


@pytest.fixture
def others(race: Race, referees: list[Referee], admin: Api, fresh: Fresh) -> Others:
    role = fresh("T")
    return Others(
        race=race,
        roles=[referee.role for referee in referees],
        readers=[referee.reader for referee in referees],
        traveller=new_member(race, admin, fresh("u"), fresh("T")),
        settled=new_member(race, admin, fresh("u"), role),
        settled_role=role,
        victim=new_member(race, admin, fresh("u"), fresh("T")).name,
    )


def test_racing_calls_are_one_serial_history(
    race: Race, referees: list[Referee], others: Others
) -> None:
    expect_all(race, referees, "before")
    run(referees, others)
    expect_one_history(race, referees, others)


@pytest.mark.long
def test_a_service_is_killed_while_calls_race(
    race: Race, referees: list[Referee], others: Others
) -> None:
    """What it held is free soon, and what it had begun is carried out by the other one."""
    expect_all(race, referees, "before")
    killer = threading.Timer(SECONDS, race.processes[0].kill)
    killer.start()
    run(referees, others, SECONDS * 5)
    killer.join()
    assert race.processes[0].mark is None
    print(f"slowest call: {race.services.slowest_s:.1f} s")
    # A lease of the dead one holds up a call for ten seconds and a look, and no more.
    assert race.services.slowest_s < LEASE_OVER_S
    expect_one_history(race, referees, others)


def expect_one_history(race: Race, referees: Sequence[Referee], others: Others) -> None:
    """The audit log, the catalog and Kafka agree, and nobody got what it should not."""
    for referee in referees:
        stream = race.streams[0]
        referee.admin.change_right(True, referee.role, "READ TUPLE", "stream", stream)
    expect_all(race, referees, "after")
    assert [leak for referee in referees for leak in referee.leaks()] == []
    until(lambda: not unfinished(race), "what could not be told to Kafka at once", 60)
    history = play(race)
    assert history.failures[others.victim] == 5
    wanted = wanted_by(history, race)
    assert in_catalog(race) == wanted
    assert readers(race.settings.kafka, race.output) == reached(race)


def expect_all(race: Race, referees: Sequence[Referee], value: str) -> None:
    """Every witness gets the value: none is deaf."""
    race.write(value)
    for referee in referees:
        referee.witness.expect(value)


def run(referees: Sequence[Referee], others: Others, seconds: float = SECONDS) -> None:
    """Let all race until every referee has judged for long enough."""
    stop = threading.Event()

    def repeat(step: Callable[[], None]) -> None:
        while not stop.is_set():
            step()

    def judge(referee: Referee) -> None:
        deadline = time.monotonic() + seconds
        while len(referee.shut) < ROUNDS or time.monotonic() < deadline:
            referee.round()

    steps = others.steps()
    with ThreadPoolExecutor(len(steps) + len(referees)) as pool:
        racing = [pool.submit(repeat, step) for step in steps]
        try:
            for judging in [pool.submit(judge, referee) for referee in referees]:
                judging.result()
        finally:
            stop.set()
        for thread in racing:
            thread.result()
