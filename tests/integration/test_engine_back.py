"""An engine that is killed, whose Spark has no memory, or that hangs: its ten queries come back.

Ten other queries run in another engine. The supervisor is the platform's own, and keeps a spare
engine. All are young, so all ten are suspected, and go on trial.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from sqlalchemy import select, update

from catalog.engines import FIRST
from catalog.models import Assignment, DeliveryClass, Heartbeat, OutputRow
from catalog.store import Catalog
from deploy.processes import ManagedProcess
from deploy.runtime import Runtime
from deploy.scenario.listener import read_settings
from deploy.scenario.person import Person
from deploy.stack import Stack, StackOptions
from tests.audit_key import AUDIT_KEY
from tests.integration.flowing import PAUSE_S, Typist, await_that

QUERIES = 20
# On a quiet machine; see docs/performance.md. Beside other tests it takes several times as long.
BACK_S = 120.0
# To notice that an engine stands still takes so long.
HUNG_S = 10.0
OTHERS_WAIT_S = 10.0
BEFORE_S = 10.0


@dataclass
class Gauge:
    """Sends numbered records to the stream s, and notes when they come to each delivery topic."""

    stack: Stack
    folder: Path
    topics: Mapping[str, str]
    sent: list[float] = field(default_factory=list)
    # topic -> number -> its ids, and when it came first
    ids: dict[str, dict[int, set[bytes]]] = field(default_factory=lambda: defaultdict(dict))
    came: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    _stops: tuple[threading.Event, threading.Event] = field(
        default_factory=lambda: (threading.Event(), threading.Event())
    )
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to send and to read."""
        for work in (self._send, self._read):
            self._threads.append(threading.Thread(target=work))
            self._threads[-1].start()

    def end_sending(self) -> int:
        """Stop to send. Gives how many were sent."""
        self._stops[0].set()
        self._threads[0].join()
        return len(self.sent)

    def close(self) -> None:
        """Stop."""
        for stop in self._stops:
            stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        producer = Producer({**read_settings(self.folder / "librdkafka.conf"), "log_level": 0})
        topic = json.loads((self.folder / "sender.json").read_text())["topic"]
        while not self._stops[0].wait(PAUSE_S):
            self.sent.append(time.monotonic())
            producer.produce(topic, json.dumps({"n": len(self.sent) - 1}).encode())
            producer.poll(0)
        assert producer.flush(30) == 0

    def _read(self) -> None:
        kafka = self.stack.settings.kafka
        own = {"group.id": "gauge", "enable.auto.commit": False}
        consumer = Consumer(kafka.client_config(kafka.secadmin) | own)
        consumer.assign([TopicPartition(topic, 0, 0) for topic in self.topics])
        while not self._stops[1].is_set():
            for message in consumer.consume(500, 0.05):
                assert message.error() is None
                headers = dict(message.headers() or [])
                number = json.loads(message.value() or b"")["n"]
                topic = str(message.topic())
                self.came[topic].setdefault(number, time.monotonic())
                self.ids[topic].setdefault(number, set()).add(headers["id"])  # type: ignore[arg-type]
        consumer.close()

    def newest(self, topic: str) -> int:
        """The highest number that came to the topic."""
        return max(self.came[topic], default=-1)

    def latencies(self, topics: list[str], since: float, until: float) -> list[float]:
        """How long the records that were sent in this time took to each of the topics, sorted."""
        own = [n for n, at in enumerate(self.sent) if since <= at < until]
        return sorted(self.came[t][n] - self.sent[n] for t in topics for n in own)


@dataclass
class Yard:
    """The platform, and which delivery topics come from the first engine."""

    stack: Stack
    admin: Person
    gauge: Gauge
    catalog: Catalog

    def of_engine(self, name: str) -> list[str]:
        """The delivery topics of the queries whose home is the engine."""
        return [topic for topic, (home, _) in self._places().items() if home == name]

    def are_home(self, topics: list[str]) -> bool:
        """Whether the queries of these topics run in their home, and it has a Spark."""
        places, mark = self._places(), self.stack.engines[FIRST].mark
        if mark is None or _java_of(mark.pid) is None:
            return False
        return all(places[topic] == (FIRST, FIRST) for topic in topics)

    def make_young(self) -> None:
        """Let the first engine's queries have changed a moment ago."""
        with self.catalog.bookkeeping() as session:
            beats = session.get_one(Heartbeat, FIRST).beats
            own = update(Assignment).where(Assignment.home == FIRST)
            session.execute(own.values(changed_beat=beats))

    def _places(self) -> dict[str, tuple[str, str]]:
        """topic -> the engine where its query belongs, and the engine where it runs."""
        query = (
            select(DeliveryClass.topic, Assignment.home, Assignment.engine)
            .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
            .join(Assignment, Assignment.execution_id == OutputRow.execution_id)
        )
        with self.catalog.read() as session:
            return {topic: (home, engine) for topic, home, engine in session.execute(query)}


@pytest.fixture
def yard(runtime: Runtime, tmp_path: Path) -> Iterator[Yard]:
    options = StackOptions(
        tmp_path / "state", broker_port=0, secadmin_port=0, engines=2, detached=True, spare=True
    )
    with Stack(options, runtime) as stack:
        admin = Typist.administrator(stack)
        admin.run("schema", "add", "s", "n:bigint!")
        admin.run("stream", "add", "s", "--schema", "s")
        admin.run("grant", "ADMIN", "SEND", "READ TUPLE", "stream", "s")
        folder = admin.folder / "sender"
        admin.run("sender", "s", "--dir", str(folder))
        topics = {}
        for number in range(QUERIES):
            # Equal queries would run once.
            text = f"SELECT n FROM s WHERE n > {-1 - number}"
            admin.run("query", "add", f"q{number}", "-", "--language", "sql", text=text)
            admin.subscribe(f"q{number}")
        for row in admin.ask("accesses"):
            if row["kind"] == "output":
                topics[row["topics"][0]] = row["name"]
        assert len(topics) == QUERIES
        catalog = Catalog(stack.settings.catalog_url, AUDIT_KEY)
        gauge = Gauge(stack, folder, topics)
        try:
            gauge.start()
            yield Yard(stack, admin, gauge, catalog)
        finally:
            gauge.close()
            catalog.close()


def kill(engine: ManagedProcess) -> None:
    """Kill the engine's process. Its Spark ends with it, or is ended by the next one."""
    assert engine.mark is not None
    os.kill(engine.mark.pid, signal.SIGKILL)


def end_spark(engine: ManagedProcess) -> None:
    """End the engine's Java, as Java itself does if it has no memory (`-XX:+ExitOnOutOf…`)."""
    assert engine.mark is not None
    java = _java_of(engine.mark.pid)
    assert java is not None
    os.kill(java, signal.SIGKILL)


def stop(engine: ManagedProcess) -> None:
    """Let the engine stand still as a whole."""
    assert engine.mark is not None
    os.killpg(engine.mark.pid, signal.SIGSTOP)


def _java_of(engine: int) -> int | None:
    """The process id of the engine's Java; None if it has none."""
    for folder in Path("/proc").iterdir():
        try:
            same = folder.name.isdecimal() and os.getsid(int(folder.name)) == engine
            if same and (folder / "comm").read_text().strip() == "java":
                return int(folder.name)
        except (OSError, ValueError):
            continue
    return None


@pytest.mark.slow
@pytest.mark.long
def test_what_an_engine_ran_is_back_soon_and_others_do_not_wait(yard: Yard) -> None:
    gauge = yard.gauge
    await_that(lambda: all(gauge.newest(t) > 40 for t in gauge.topics), "all flow")
    # Nobody waited until the subscriptions were fed: each topic begins with its own record.
    oldest = {topic: min(gauge.came[topic]) for topic in gauge.topics}
    lost = yard.of_engine(FIRST)
    others = [topic for topic in gauge.topics if topic not in lost]
    assert len(lost) == len(others) == QUERIES // 2
    figures = {}
    for fail in (kill, end_spark, stop):
        await_that(lambda: yard.are_home(lost), "all run at home", timeout_s=400)
        await_that(yard.stack.spare_file.exists, "there is a spare", timeout_s=600)
        yard.make_young()
        measured = len(gauge.sent) + round(BEFORE_S / PAUSE_S)
        await_that(lambda n=measured: len(gauge.sent) > n, "how it was before is known")  # type: ignore[misc]
        figures[fail.__name__] = _fail(yard, fail, lost, others)
    print(json.dumps(figures, indent=1))
    sent = gauge.end_sending()
    for topic in gauge.topics:
        await_that(lambda topic=topic: gauge.newest(topic) == sent - 1, "all came")  # type: ignore[misc]
    for topic, ids in gauge.ids.items():
        assert ids.keys() >= set(range(oldest[topic], sent)), f"nothing is lost: {topic}"
        assert {len(each) for each in ids.values()} == {1}, "what comes again has its id"


def _fail(
    yard: Yard, fail: Callable[[ManagedProcess], None], lost: list[str], others: list[str]
) -> dict[str, float]:
    """Let the first engine fail, and wait until its queries are back."""
    gauge = yard.gauge
    before = time.monotonic() - BEFORE_S + 1
    engine = yard.stack.engines[FIRST]
    assert engine.mark is not None
    lost_pid = engine.mark.pid
    fail(engine)
    failed = time.monotonic()
    # The Java of an engine that was killed still delivers for a moment: that is not "back".
    await_that(lambda: fail is stop or _java_of(lost_pid) is None, "its Java has ended")
    first = len(gauge.sent)
    patience = BACK_S + (HUNG_S if fail is stop else 0.0)

    def are_back() -> bool:
        return all(gauge.newest(topic) > first for topic in lost)

    await_that(are_back, f"all are back: {fail.__name__}", timeout_s=patience)
    back = time.monotonic()
    newest = len(gauge.sent)
    await_that(lambda: all(gauge.newest(t) >= newest for t in others), "the others go on")
    quiet = gauge.latencies(others, before, failed)
    during = gauge.latencies(others, failed, back)
    assert during[-1] < OTHERS_WAIT_S, "the others hardly wait"
    return {
        "back after, s": round(back - failed, 1),
        "p99 of the others before, ms": round(1000 * quiet[len(quiet) * 99 // 100]),
        "p99 of the others meanwhile, ms": round(1000 * during[len(during) * 99 // 100]),
        "longest of the others meanwhile, ms": round(1000 * during[-1]),
    }
