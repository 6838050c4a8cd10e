"""The platform in containers, as docs/cluster.md says: the image, and all services of Compose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from catalog.engines import all_engines
from deploy.cluster_files import DATA, THERE, Hosts
from tests.integration.cluster.composed import (
    OWNER,
    SECRET_FILE,
    Composed,
    Visitor,
    built_image,
    composed,
    docker,
    require_compose,
    require_images,
)
from tests.integration.flowing import await_that

# An image is built, and fourteen containers start.
pytestmark = [pytest.mark.long, pytest.mark.slow]

START_S, FED_S = 300.0, 180.0
SILENT_S = "15"
SOON = ("--timeout", "20")
PRIMARY, STANDBY = Hosts().postgresql
BOTH = ["london", "newyork"]
TRADE = ("ts:timestamp!", "symbol:string!", "price:double!", "quantity:bigint!")
QUERY = """
SELECT ts, symbol, price * quantity AS amount FROM london WHERE quantity > 100
UNION ALL
SELECT ts, symbol, price * quantity AS amount FROM newyork WHERE quantity > 100
"""
NODES = (*Hosts().kafka, *Hosts().controllers)
# Java has ended as it was asked to, by SIGTERM.
ENDED = 128 + 15


@pytest.fixture(scope="module")
def images() -> dict[str, str]:
    require_compose()
    return require_images()


@pytest.fixture(scope="module")
def image(images: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with built_image(tmp_path_factory.mktemp("image"), images["PYTHON"]) as built:
        yield built


@pytest.fixture(scope="module")
def platform(
    images: dict[str, str], image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Composed]:
    with composed(tmp_path_factory.mktemp("composed"), images, image) as started:
        yield started


@dataclass
class Cast:
    """Who is at the platform: `ann` may read London alone, and `bob` both streams."""

    admin: Visitor
    ann: Visitor
    bob: Visitor

    def send(self, stream: str, symbol: str) -> None:
        """The administrator sends one trade."""
        record = {"ts": "2026-11-20T10:00:00Z", "symbol": symbol, "price": 2.0, "quantity": 500}
        file = self.admin.write(f"{symbol}.jsonl", json.dumps(record))
        self.admin.run("produce", stream, file)


@pytest.fixture(scope="module")
def cast(platform: Composed) -> Iterator[Cast]:
    """The first administrator logs in at the one address, and makes users, roles and streams."""
    with platform.terminal() as terminal:
        admin, ann, bob = (platform.visitor(name, terminal) for name in ("admin", "ann", "bob"))
        one_time = first_password(platform)
        await_answer(admin, "login", "admin", "--password-stdin", text=one_time)
        admin.log_in(one_time)
        admin.run("schema", "add", "trade", *TRADE)
        for stream in ("london", "newyork"):
            timed = ("--event-time", "ts", "--time", "data")
            admin.run("stream", "add", stream, "--schema", "trade", *timed)
            admin.run("grant", "ADMIN", "SEND", "stream", stream)
        for person, role, may_read in ((ann, "ANALYST", ["london"]), (bob, "TRADER", BOTH)):
            admin.run("role", "add", role)
            one_time = admin.ask("user", "add", person.name)["password"]
            admin.run("user", "assign", person.name, role)
            admin.run("grant", role, "VIEW CATALOG", "ADD QUERY", "system")
            admin.run("grant", role, "VIEW OBJECT", "schema", "trade")
            for stream in BOTH:
                admin.run("grant", role, "VIEW OBJECT", "stream", stream)
            for stream in may_read:
                admin.run("grant", role, "READ TUPLE", "stream", stream)
            person.log_in(one_time)
        yield Cast(admin, ann, bob)


@dataclass(frozen=True)
class Delivered:
    """What came from the query `big`: symbols to `bob`, and records to `ann`.

    Three records were sent. Before the third, `ann` lost her only right.
    """

    both: list[str]
    own: list[dict[str, object]]
    after_the_revocation: list[dict[str, object]]


@pytest.fixture(scope="module")
def delivered(cast: Cast) -> Delivered:
    """`ann` adds a query over both streams, and both subscribe to it. Then records flow."""
    cast.ann.run("query", "add", "big", cast.ann.write("big.sql", QUERY))
    cast.ann.run("grant", "TRADER", "VIEW OBJECT", "SUBSCRIBE", "output", "big")
    for person in (cast.ann, cast.bob):
        person.subscribe("big")
        await_that(
            lambda person=person: all(row["fed"] for row in person.ask("accesses")),  # type: ignore[misc]
            f"{person.name} is fed",
            FED_S,
        )
    cast.send("newyork", "IBM")
    cast.send("london", "VOD")
    both = symbols(cast.bob.consume("big", "--max", "2", "--timeout", "120"))
    own = cast.ann.consume("big", "--timeout", SILENT_S)
    cast.admin.run("revoke", "ANALYST", "READ TUPLE", "stream", "london")
    cast.send("london", "BP")
    all_three = symbols(cast.bob.consume("big", "--max", "3", "--timeout", "120"))
    assert all_three == ["BP", *both]
    return Delivered(both, own, cast.ann.consume("big", "--timeout", SILENT_S))


def symbols(records: list[dict[str, object]]) -> list[str]:
    return sorted(str(each["symbol"]) for each in records)


def await_answer(person: Visitor, *arguments: str, text: str = "") -> None:
    """Wait until a SecAdmin that works is behind the one address."""
    await_that(
        lambda: person.attempt(*arguments, text=text).returncode == 0,
        f"{person.name} gets an answer",
        START_S,
    )


def first_password(platform: Composed) -> str:
    """What the SecAdmin that started first has written."""
    file = str(DATA / "first-administrator.password")
    found: list[str] = []

    def written() -> bool:
        found[:] = [each for each in Hosts().secadmin if platform.has_file(each, file)]
        return bool(found)

    await_that(written, "a first password is written", START_S)
    return platform.inside(found[0], "cat", file).strip()


def in_image(image: str, *command: str, user: str = "") -> str:
    """What a command prints in a container of the image alone."""
    chosen = ("--user", user) if user else ()
    return docker("run", "--rm", *chosen, "--entrypoint", command[0], image, *command[1:])


def test_the_image_runs_as_a_user_who_cannot_change_it(image: str) -> None:
    assert in_image(image, "id", "-u").strip() == str(OWNER)
    # It may not look into each folder, and then the command does not end with 0.
    search = "find / -xdev -writable -not -type l 2>/dev/null; true"
    writable = set(in_image(image, "sh", "-c", search).splitlines())
    own = {"/tmp", "/var/tmp", "/run/lock", "/home/streams", str(DATA)}
    assert {line for line in writable if not line.startswith(("/dev/", "/home/streams/"))} <= own
    assert str(DATA) in writable


def test_the_image_has_the_archive_of_sparks_classes(image: str) -> None:
    assert in_image(image, "sh", "-c", "ls /opt/secure-streams/*.jsa").strip()


def test_no_secret_is_in_the_image(image: str) -> None:
    """Neither a file of the clone beside its packages, nor what a platform's parts are given."""
    files = in_image(image, "find", "/", "-xdev", "-type", "f", user="0").splitlines()
    names = {line.rpartition("/")[2] for line in files}
    assert "jars.lock" in names
    assert SECRET_FILE not in names
    assert not [name for name in names if name.endswith((".password", ".key"))]
    assert not [line for line in files if line.startswith((str(THERE), str(DATA)))]
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image)
    told = json.loads(docker("inspect", "--format", "{{json .Config.Env}}", image))
    for word in ("password", "secret=", "token"):
        assert word not in history.lower()
        assert word not in str(told).lower()


@pytest.mark.usefixtures("cast")
def test_each_part_runs_as_its_user_and_sees_its_own_folder_alone(platform: Composed) -> None:
    for service in (*NODES, *Hosts().secadmin, *all_engines(1)):
        assert platform.inside(service, "id", "-u").strip() == str(OWNER)
        folder = platform.inside(service, "ls", "/etc/secure-streams").split()
        others = {"superuser.password", "replicator.password"} & set(folder)
        assert not others
        assert ("audit.key" in folder) == (service in Hosts().secadmin)


@pytest.mark.usefixtures("cast")
def test_the_standby_confirms_each_change(platform: Composed) -> None:
    """Step 4 of docs/cluster.md."""
    ask = ("psql", "--tuples-only", "--no-align", "--command")

    def follows(column: str) -> list[str]:
        told = platform.inside(
            PRIMARY, *ask, f"SELECT {column} FROM pg_stat_replication", user="postgres"
        )
        return told.split()

    await_that(lambda: follows("state") == ["streaming"], "the standby follows", START_S)
    assert follows("application_name") == [STANDBY]
    for statement in (
        "ALTER SYSTEM SET synchronous_standby_names = '*'",
        "SELECT pg_reload_conf()",
    ):
        platform.inside(PRIMARY, *ask, statement, user="postgres")
    await_that(lambda: follows("sync_state") == ["sync"], "the standby confirms")


def test_a_subscriber_gets_what_it_may_see_and_nothing_after_a_revocation(
    cast: Cast, delivered: Delivered
) -> None:
    assert delivered.both == ["IBM", "VOD"]
    # Bob has both, so New York's was delivered before.
    traded = {"ts": "2026-11-20T10:00:00.000000Z", "symbol": "VOD", "amount": 1000.0}
    assert delivered.own == [traded]
    assert delivered.after_the_revocation == []
    assert "intact" in cast.admin.run("audit", "verify")


def test_no_part_has_crashed(platform: Composed, cast: Cast) -> None:
    """A part that starts before another one says what it waits for, and starts again."""
    for service in (*Hosts().secadmin, *all_engines(1)):
        assert "Traceback" not in platform.run("logs", service)
        assert not platform.container(service)["State"]["OOMKilled"]
    assert cast.admin.ask("health")


def test_secadmins_at_other_addresses_are_found(platform: Composed, cast: Cast) -> None:
    """As after an update: they are new containers, and the one address is not."""
    parts = Hosts().secadmin
    before = {platform.address(each) for each in parts}
    platform.run("rm", "--stop", "--force", *parts)
    # Others have their addresses now.
    with platform.terminal("first"), platform.terminal("second"):
        platform.run("up", "--detach", "--no-deps", *parts)
        assert not before & {platform.address(each) for each in parts}
        await_answer(cast.admin, "catalog")


@pytest.mark.usefixtures("delivered")
def test_all_parts_end_in_time_and_go_on_with_what_they_had(platform: Composed, cast: Cast) -> None:
    """They are stopped and removed. New containers take their volumes."""
    platform.run("stop")
    ended = {each: platform.container(each)["State"] for each in platform.services()}
    codes = {each: state["ExitCode"] for each, state in ended.items()}
    # Compose kills what takes too long, and that shows.
    assert codes == {each: ENDED if each in NODES else 0 for each in codes}
    order = (all_engines(1), Hosts().secadmin, Hosts().kafka, Hosts().controllers)
    times = [[ended[each]["FinishedAt"] for each in parts] for parts in order]
    assert all(max(first) < min(then) for first, then in pairwise(times))
    assert max(times[1]) < min(ended[each]["FinishedAt"] for each in Hosts().postgresql)
    # The terminal is in the network, which so stays.
    platform.run("rm", "--force")
    platform.run("up", "--detach")

    # A session and its accesses are still there, and each record that was delivered.
    await_answer(cast.bob, "accesses")
    await_that(
        lambda: symbols(cast.bob.consume("big", "--max", "3", *SOON)) == ["BP", "IBM", "VOD"],
        "all that was delivered is there",
        FED_S,
    )
    cast.send("newyork", "AAPL")
    await_that(
        lambda: "AAPL" in symbols(cast.bob.consume("big", "--max", "4", *SOON)),
        "a new record comes",
        FED_S,
    )
    assert cast.ann.consume("big", "--timeout", SILENT_S) == []
