"""The whole platform on clusters: each of their parts is killed while records flow.

Three Kafka nodes, each a broker and a controller; a Spark master and two workers; PostgreSQL with a
standby; two SecAdmins. They are processes of this machine. Nothing is lost, what comes again has
the id that it had, and nothing comes after a revocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from catalog.engines import FIRST, INGEST
from deploy.runtime import Runtime
from deploy.scenario.listener import Listener
from deploy.scenario.story import PARKED
from deploy.settings import Table, write_settings
from tests.integration.cluster.kafka_cluster import KafkaCluster
from tests.integration.cluster.steps import controller_of
from tests.integration.flowing import Reader, await_that
from tests.integration.service.racing.services import RunningService, started
from tests.integration.test_spark_cluster import got, numbers_of
from tests.integration.test_without_gaps import EACH, QUERIES, WINDOWS, Exchange, exchanging, ids_of
from tests.postgresql_pair import Pair, pair
from tests.spark_cluster import SparkCluster, spark_cluster

__all__ = ["spark_cluster"]

# Fifteen processes of Java start.
pytestmark = [pytest.mark.long, pytest.mark.slow]

ROLES = {"bob": ("one", "two"), "still": ("one",)}
# A record waits in its sender until its broker has a successor.
TIMED = ("--lateness", "60s")
# Records that flow after a revocation, and before the first part is killed.
AFTER = 80
BACK_S = 300.0


@dataclass
class Place:
    """A platform on clusters, to which records flow."""

    exchange: Exchange
    kafka: KafkaCluster
    spark: SparkCluster
    database: Pair
    other: RunningService
    readers: list[Reader] = field(default_factory=list)

    def await_more(self) -> None:
        """Wait until all readers of records have one that is sent from now on."""
        sent = self.exchange.flow.count("one")
        for reader in self.readers:
            await_that(partial(got, reader, sent, "one"), "records go on", BACK_S)

    def revoke(self) -> int:
        """Take the second stream from bob. How many of it were sent when the call returned."""

        def is_done() -> bool:
            command = ("revoke", "bob", "READ TUPLE", "stream", "two")
            return self.exchange.admin.attempt(*command).returncode == 0

        await_that(is_done, "the revocation", BACK_S)
        return self.exchange.flow.count("two")


@pytest.fixture
def place(
    runtime: Runtime, whole: KafkaCluster, spark_cluster: SparkCluster, tmp_path: Path
) -> Iterator[Place]:
    with pair() as database:
        database.confirm_on_both()
        table: Table = {
            "catalog": {"url": database.url},
            "kafka": whole.table,
            "secfilter": spark_cluster.settings,
        }
        file = write_settings(table, tmp_path / "operator.toml")
        queries = {name: QUERIES[name] for name in (EACH, WINDOWS)}
        state = tmp_path / "state"
        with (
            exchanging(runtime, state, ROLES, queries, file, TIMED) as exchange,
            started(exchange.stack.settings, state, 1) as (other,),
        ):
            yield Place(exchange, whole, spark_cluster, database, other)


def kill_node(number: int, place: Place) -> None:
    member = place.kafka.members[number]
    member.kill()
    place.await_more()
    place.kafka.launch(member)
    place.kafka.await_all()


def pause_controller(place: Place) -> None:
    member = controller_of(place.kafka, "")
    member.pause()
    try:
        place.await_more()
    finally:
        member.go_on()
    place.kafka.await_all()


def kill_master(place: Place) -> None:
    place.spark.kill_master()
    place.await_more()
    place.spark.start_master()


def kill_worker(place: Place) -> None:
    place.spark.kill(0)
    place.await_more()
    place.spark.add_worker()


def kill_executors(place: Place) -> None:
    place.spark.kill_executors(1)


def kill_database(place: Place) -> None:
    place.database.kill_primary()
    place.database.promote()


def kill_secadmin(place: Place) -> None:
    """It stays away, and people go to the other one."""
    exchange = place.exchange
    exchange.stack.secadmin.kill()
    place.await_more()
    exchange.admin = replace(exchange.admin, url=place.other.url)
    exchange.admin.run("login", "admin", "--password-stdin", text=exchange.admin.password)


def kill_engine(name: str, place: Place) -> None:
    stack = place.exchange.stack
    stack.engines[name].kill()
    stack.start_engines([name])


FAULTS: dict[str, Callable[[Place], None]] = {
    **{f"broker and controller {number}": partial(kill_node, number) for number in (1, 2, 3)},
    "broker and active controller hang": pause_controller,
    "Spark's master": kill_master,
    "a worker": kill_worker,
    "executors": kill_executors,
    "SecAdmin": kill_secadmin,
    "the database": kill_database,
    "ingest": partial(kill_engine, INGEST),
    "the engine of the queries": partial(kill_engine, FIRST),
}


def test_each_part_fails_while_records_flow(place: Place) -> None:
    exchange = place.exchange
    flow = exchange.flow
    bob, still = (exchange.subscribe(name, name) for name in ROLES)
    windows = Reader.begin(bob.person, WINDOWS)
    exchange.of_windows["bob"] = windows
    for reader in (bob, still, windows):
        await_that(reader.is_fed, "its class is fed", BACK_S)
    place.readers += bob, still
    hostile = Listener(bob.listener.folder, "parked", PARKED).start()
    try:
        flow.start()
        await_that(partial(bob.has, "one", 0, AFTER), "records flow", BACK_S)
        for name, fail in FAULTS.items():
            print(f"{name}: {flow.count('one')} records are sent")
            fail(place)
            place.await_more()
        before = flow.count("two")
        await_that(partial(bob.has, "two", 0, before), "all of the second stream", BACK_S)
        returned = place.revoke()
        await_that(lambda: flow.count("two") > returned + AFTER, "records flow")
        flow.close()
        sent = flow.count("one")
        for reader in (bob, still, windows):
            await_that(partial(reader.has, "one", 0, sent), "all of the first stream", BACK_S)
    finally:
        hostile.close()
    assert bob.numbers("two") | numbers_of(hostile) <= set(range(returned)), "came later"
    for reader in (bob, still, windows):
        results = ids_of(reader)
        assert set(map(len, results.values())) == {1}, "what comes again has its id"
        ids = {each.id for each in tuple(reader.arrivals)}
        assert len(ids) == len(results), "an id stands for one result"
    assert exchange.admin.ask("audit", "verify")["intact"] is True
