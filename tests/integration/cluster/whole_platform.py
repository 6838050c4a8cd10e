"""A platform all of whose parts are clusters, on this machine.

Three Kafka nodes, each a broker and a controller; a Spark master and two workers; PostgreSQL with a
standby; two SecAdmins; two hosts for the engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from catalog.engines import FIRST, INGEST
from deploy.files import private_folder
from deploy.runtime import Runtime
from deploy.scenario.listener import Listener
from deploy.scenario.person import Person
from deploy.scenario.story import PARKED
from deploy.settings import Table, write_settings
from tests.integration.cluster.engine_hosts import EngineHosts
from tests.integration.cluster.kafka_cluster import KafkaCluster
from tests.integration.flowing import Reader, await_that
from tests.integration.service.racing.services import RunningService, started
from tests.integration.test_spark_cluster import got, numbers_of
from tests.integration.test_without_gaps import EACH, QUERIES, WINDOWS, Exchange, exchanging, ids_of
from tests.postgresql_pair import Pair, pair
from tests.spark_cluster import SparkCluster

BACK_S = 300.0
ROLES = {"bob": ("one",), "still": ("one",)}
# A record waits in its sender until its broker has a successor.
TIMED = ("--lateness", "60s")
# Records that flow before the first part fails, and after each revocation.
AFTER = 80
SECOND = ("READ TUPLE", "stream", "two")


@dataclass
class Place:
    """The platform, to which records flow. `bob` may read the second stream now and then."""

    exchange: Exchange
    kafka: KafkaCluster
    spark: SparkCluster
    database: Pair
    hosts: EngineHosts
    admins: tuple[Person, Person]
    bob: Reader
    still: Reader
    windows: Reader
    hostile: Listener
    begun: int = 0

    def begin(self) -> None:
        """From here on a test asks for all records."""
        for reader in (self.bob, self.still, self.windows):
            reader.forget()
        self.begun = self.exchange.flow.count("one")

    def await_more(self) -> None:
        """Wait until the readers of records have one that is sent from now on."""
        sent = self.exchange.flow.count("one")
        for reader in (self.bob, self.still):
            await_that(partial(got, reader, sent, "one"), "records go on", BACK_S)

    def call(self, *command: str, text: str = "", done: int = 0) -> None:
        """What an administrator does, at either SecAdmin, until it is done.

        `done` is the exit code that says that an earlier try has done it.
        """

        def is_done() -> bool:
            tried = (each.attempt(*command, text=text).returncode for each in self.admins)
            return any(code in (0, done) for code in tried)

        await_that(is_done, " ".join(command), BACK_S)

    def expect_none_from(self, returned: int) -> None:
        """Nothing of the second stream comes that has this number or a later one."""
        flow = self.exchange.flow
        await_that(lambda: flow.count("two") > returned + AFTER, "records flow")
        came = self.bob.numbers("two") | numbers_of(self.hostile)
        assert {n for n in came if n >= returned} == set(), "came after the revocation"

    def expect_all(self) -> None:
        """All of the first stream came since the test began, and what came again has its id."""
        sent = self.exchange.flow.count("one")
        for reader in (self.bob, self.still, self.windows):
            # The window in which the test began may have come before.
            begun = self.begun + AFTER if reader is self.windows else self.begun
            has_all = partial(reader.has, "one", begun, sent)
            await_that(
                has_all, "all of the first stream", BACK_S, partial(self._lost, reader, begun, sent)
            )
            results = ids_of(reader)
            assert set(map(len, results.values())) == {1}, "what comes again has its id"
            # (Records go on: no more than these are looked at.)
            ids = set().union(*results.values())
            assert len(ids) == len(results), "an id stands for one result"
        assert self.admins[0].ask("audit", "verify")["intact"] is True

    def _lost(self, reader: Reader, begun: int, sent: int) -> str:
        """What did not come, and what the platform says of the stream."""
        lost = sorted(set(range(begun, sent)) - reader.numbers("one"))
        stream = self.admins[0].ask("stream", "show", "one")
        return f"{reader.person.name} lacks {len(lost)}, {lost[:1]} to {lost[-1:]}: {stream}"


@contextmanager
def whole_platform(
    runtime: Runtime, folder: Path, kafka: KafkaCluster, spark: SparkCluster
) -> Iterator[Place]:
    """The platform, while the block runs. Both engines have been taken over by another host."""
    with pair() as database:
        database.confirm_on_both()
        file = write_settings(table_of(kafka, spark, database), folder / "operator.toml")
        queries = {name: QUERIES[name] for name in (EACH, WINDOWS)}
        state = folder / "state"
        with (
            exchanging(runtime, state, ROLES, queries, file, TIMED) as exchange,
            started(exchange.stack.settings, state, 1) as (other,),
        ):
            hosts = EngineHosts(exchange.stack, folder / "hosts", BACK_S)
            readers = _subscribed(exchange)
            parked = Listener(readers[0].listener.folder, "parked", PARKED).start()
            try:
                admins = (exchange.admin, _at(other, exchange.admin))
                place = Place(exchange, kafka, spark, database, hosts, admins, *readers, parked)
                exchange.flow.start()
                place.await_more()
                for engine in (INGEST, FIRST):
                    hosts.take_over(engine)
                    place.await_more()
                yield place
            finally:
                exchange.flow.close()
                parked.close()
                hosts.close()


def table_of(kafka: KafkaCluster, spark: SparkCluster, database: Pair) -> Table:
    """The settings of such a platform, as an operator writes them."""
    return {
        "catalog": {"url": database.url},
        "kafka": kafka.table,
        "secfilter": spark.settings,
    }


def _subscribed(exchange: Exchange) -> tuple[Reader, Reader, Reader]:
    """Two users who read each record, and one of them the windows."""
    bob, still = (exchange.subscribe(name, name) for name in ROLES)
    windows = Reader.begin(still.person, WINDOWS)
    exchange.of_windows["still"] = windows
    for reader in (bob, still, windows):
        await_that(reader.is_fed, "its class is fed", BACK_S)
    return bob, still, windows


def _at(service: RunningService, admin: Person) -> Person:
    """The administrator at another SecAdmin, with a profile of its own."""
    folder = private_folder(admin.folder / "other")
    there = replace(admin, folder=folder, url=service.url)
    there.run("login", admin.name, "--password-stdin", text=admin.password)
    return there
