"""The whole platform on clusters: each of its parts fails at each stage while records flow.

Nothing is lost, what comes again has the id that it had, and nothing comes after a revocation,
whichever part is killed while an act is under way.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from catalog.engines import FIRST, INGEST
from catalog.errors import Conflict, NotFound
from deploy.runtime import Runtime
from deploy.scenario.listener import read_settings
from secadmin.kafka.principals import Credentials
from tests.integration.cluster.kafka_cluster import KafkaCluster, Member
from tests.integration.cluster.steps import controller_of, expect_shut_out, hostiles
from tests.integration.cluster.whole_platform import BACK_S, SECOND, Place, whole_platform
from tests.integration.flowing import Reader, await_that
from tests.integration.test_spark_cluster import got
from tests.integration.test_without_gaps import EACH, QUERIES, STREAMS
from tests.lanes import number_of
from tests.spark_cluster import SparkCluster

# Fifteen processes of Java start.
pytestmark = [pytest.mark.long, pytest.mark.slow]

TURNS = number_of("PLATFORM_REVOCATIONS", sample=2, long=50)
# In what a fetch gave; batches are not compressed.
_NUMBER = re.compile(rb'"stream":"two","n":(\d+)')
# What brings a part back, once what was under way is done.
Mend = Callable[[], object]
Fault = Callable[[Place], Mend]
# An act. It calls what it is given when it begins, and gives what is left to be seen.
Stage = Callable[[Place, Callable[[], None]], Mend]


@pytest.fixture(scope="module")
def started(
    runtime: Runtime, cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """The platform of all tests here."""
    folder = tmp_path_factory.mktemp("platform")
    spark = folder / "spark"
    spark.mkdir(mode=0o700)
    with (
        SparkCluster(spark, runtime.java) as workers,
        whole_platform(runtime, folder, cluster, workers) as place,
    ):
        yield place


@pytest.fixture
def place(started: Place) -> Place:
    """The platform, all of which is well."""
    started.kafka.await_all()
    started.await_more()
    started.begin()
    return started


def kill_node(member: Member, place: Place) -> Mend:
    def mend() -> None:
        place.kafka.launch(member)
        place.kafka.await_all()

    member.kill()
    return mend


def kill_broker(place: Place) -> Mend:
    """One that is not the active controller."""
    active = controller_of(place.kafka, "")
    return kill_node(next(m for m in place.kafka.members.values() if m is not active), place)


def kill_controller(place: Place) -> Mend:
    return kill_node(controller_of(place.kafka, ""), place)


def pause_controller(place: Place) -> Mend:
    member = controller_of(place.kafka, "")

    def mend() -> None:
        member.go_on()
        place.kafka.await_all()

    member.pause()
    return mend


def kill_secadmin(place: Place) -> Mend:
    stack = place.exchange.stack
    stack.secadmin.kill()
    return stack.start_secadmin


def kill_ingest(place: Place) -> Mend:
    place.hosts.kill(INGEST)
    return _nothing


def kill_queries(place: Place) -> Mend:
    place.hosts.kill(FIRST)
    return _nothing


def lose_host_of_queries(place: Place) -> Mend:
    place.hosts.take_over(FIRST)
    return _nothing


def kill_worker(place: Place) -> Mend:
    workers = place.spark.workers
    place.spark.kill(next(n for n, each in enumerate(workers) if each.poll() is None))
    return place.spark.add_worker


def kill_executors(place: Place) -> Mend:
    workers = place.spark.workers
    place.spark.kill_executors(max(n for n, each in enumerate(workers) if each.poll() is None))
    return _nothing


def kill_master(place: Place) -> Mend:
    place.spark.kill_master()
    return place.spark.start_master


def kill_database(place: Place) -> Mend:
    def mend() -> None:
        place.database.make_standby()
        place.database.confirm_on_both()

    place.database.kill_primary()
    place.database.promote()
    return mend


def _nothing() -> None:
    """Nothing is to be mended."""


def start(place: Place, begins: Callable[[], None]) -> Mend:
    """A query is added, and its first results come to a subscriber."""
    text = " UNION ALL ".join(QUERIES[EACH].format(stream=stream) for stream in STREAMS)
    name = f"new{time.monotonic_ns()}"
    added = ("query", "add", name, "-", "--language", "sql")
    begins()
    place.call(*added, text=text, done=Conflict.exit_code)

    def end() -> None:
        place.call("grant", "still", "VIEW OBJECT", "SUBSCRIBE", "output", name)
        reader = Reader.begin(place.still.person, name)
        with closing(reader.listener):
            await_that(reader.is_fed, "its class is fed", BACK_S)
            sent = place.exchange.flow.count("one")
            await_that(partial(got, reader, sent, "one"), "results of the new query", BACK_S)
        place.call("query", "remove", name, done=NotFound.exit_code)

    return end


def flow(_place: Place, begins: Callable[[], None]) -> Mend:
    """Records flow, and nothing else happens."""
    begins()
    return _nothing


def grant(place: Place, begins: Callable[[], None]) -> Mend:
    """A right is given."""
    begins()
    place.call("grant", "bob", *SECOND)
    granted = place.exchange.flow.count("two")
    return lambda: await_that(partial(got, place.bob, granted), "the second stream", BACK_S)


def revoke(place: Place, begins: Callable[[], None]) -> Mend:
    """A right is taken."""
    begins()
    place.call("revoke", "bob", *SECOND)
    returned = place.exchange.flow.count("two")
    return lambda: place.expect_none_from(returned)


def restart(place: Place, begins: Callable[[], None]) -> Mend:
    """Ingest starts on the other host, because its own is lost."""
    place.hosts.take_over(INGEST, begins)
    return _nothing


# The part fails so many seconds after the act has begun.
STAGES = {start: 0.5, flow: 0.0, grant: 0.1, revoke: 0.1, restart: 3.0}
AT_ANY_STAGE: tuple[Fault, ...] = (
    *(kill_broker, kill_controller, kill_secadmin),
    *(kill_ingest, kill_queries, kill_worker, kill_database),
)
WHILE_RECORDS_FLOW: tuple[Fault, ...] = (
    *(pause_controller, kill_master, kill_executors, lose_host_of_queries),
)


def test_nothing_comes_after_any_of_many_revocations(place: Place) -> None:
    """At each node two hostile clients read. One SecAdmin gives, and the other one takes."""
    took = []
    own = read_settings(place.bob.listener.folder / "librdkafka.conf")
    credentials = Credentials(own["sasl.username"], own["sasl.password"])
    for turn in range(TURNS):
        giver, taker = place.admins if turn % 2 else place.admins[::-1]
        before = set(place.bob.access()["topics"])
        giver.run("grant", "bob", *SECOND)
        granted = place.exchange.flow.count("two")
        await_that(partial(got, place.bob, granted), "the second stream comes", BACK_S)
        (topic,) = set(place.bob.access()["topics"]) - before
        with hostiles(place.kafka, credentials, topic) as clients:
            began = time.monotonic()
            taker.run("revoke", "bob", *SECOND)
            took.append(time.monotonic() - began)
            returned = place.exchange.flow.count("two")
            place.expect_none_from(returned)
            expect_shut_out(clients, at={*place.kafka.members})
        numbers = [int(n) for each in clients for n in _NUMBER.findall(each.records)]
        assert numbers and max(numbers) < returned, f"turn {turn}: came after the revocation"
    took.sort()
    print(f"the whole call: p50 {took[len(took) // 2]:.2f} s, max {took[-1]:.2f} s")
    place.expect_all()


@pytest.mark.parametrize("fault", AT_ANY_STAGE)
def test_a_part_fails_at_each_stage(place: Place, fault: Fault) -> None:
    for stage, delay_s in STAGES.items():
        fails_during(place, fault, stage, delay_s)
    place.expect_all()


def test_other_parts_fail_while_records_flow(place: Place) -> None:
    for fault in WHILE_RECORDS_FLOW:
        fails_during(place, fault, flow, 0.0)
    place.expect_all()


def fails_during(place: Place, fault: Fault, stage: Stage, delay_s: float) -> None:
    """Let a part fail while an act is under way. Both end well, and records go on before that."""
    begun, times = threading.Event(), []

    def begins() -> None:
        times.append(time.monotonic())
        begun.set()

    def strike() -> Mend:
        assert begun.wait(BACK_S), "the act does not begin"
        time.sleep(delay_s)
        return fault(place)

    with ThreadPoolExecutor(1) as striking:
        struck = striking.submit(strike)
        end = stage(place, begins)
        times.append(time.monotonic())
        mend = struck.result()
    place.await_more()
    times.append(time.monotonic())
    mend()
    end()
    place.await_more()
    began, acted, flowed = times
    print(
        f"{fault.__name__}, {stage.__name__}: done after {acted - began:.1f} s, "
        f"records after {flowed - began:.1f} s, all after {time.monotonic() - began:.1f} s"
    )
