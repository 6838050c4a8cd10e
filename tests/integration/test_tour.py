"""A platform like the README's, after a stop, and after a crash: its reader misses nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from deploy.part_names import SUPERVISOR, part_names
from deploy.ports import free_port
from deploy.runtime import Runtime
from deploy.scenario.person import Person
from deploy.stack import Stack, StackOptions
from deploy.stopping import stop_all
from secadmin.cli.kafka.client_settings import parse_librdkafka_file
from tests.integration.killing import kill_everything

BATCH_MS = 2_000
PATIENCE_S = 120.0
TRADE = ("ts:timestamp!", "symbol:string!", "price:double!", "quantity:bigint!")
BIG = """\
SELECT ts, symbol, price * quantity AS amount FROM london WHERE quantity > 100
UNION ALL
SELECT ts, symbol, price * quantity AS amount FROM newyork WHERE quantity > 100
"""
TRADES = """\
ts,symbol,price,quantity
2026-11-20T10:00:00Z,VOD,72.5,500
2026-11-20T10:00:01Z,BP,412.1,50
2026-11-20T10:00:02Z,HSBA,880.0,200
"""
BIG_TRADES = 2


@pytest.fixture
def stack(runtime: Runtime, tmp_path: Path) -> Iterator[Stack]:
    """A platform in the background, as `up` starts it, but for its ports and short batches."""
    port = free_port()
    options = StackOptions(
        tmp_path / "state",
        broker_port=port,
        secadmin_port=free_port(port),
        detached=True,
        batch_ms=BATCH_MS,
    )
    started = Stack(options, runtime)
    yield started
    stop_all(started.state)


def _again(stack: Stack) -> Stack:
    """The next `up` in the same folder."""
    following = Stack(stack.options, stack.runtime)
    following.start()
    return following


def _prepare(admin: Person, ann: Person) -> Path:
    """Everything of the tour up to the first tuple; returns the folder of Ann's subscription."""
    admin.run("schema", "add", "trade", *TRADE)
    for stream in ("london", "newyork"):
        options = ("--schema", "trade", "--event-time", "ts", "--time", "data")
        admin.run("stream", "add", stream, *options)
    admin.run("role", "add", "ANALYST")
    one_time = admin.ask("user", "add", "ann")["password"]
    admin.run("user", "assign", "ann", "ANALYST")
    admin.run("grant", "ANALYST", "VIEW CATALOG, ADD QUERY", "on", "system")
    admin.run("grant", "ANALYST", "VIEW OBJECT", "on", "schema", "trade")
    admin.run("grant", "ANALYST", "VIEW OBJECT, READ TUPLE", "on", "stream", "london")
    admin.run("grant", "ANALYST", "VIEW OBJECT", "on", "stream", "newyork")
    for stream in ("london", "newyork"):
        admin.run("grant", "ADMIN", "SEND", "on", "stream", stream)
    ann.log_in(one_time)
    query = ann.folder / "big.sql"
    query.write_text(BIG)
    ann.run("query", "add", "big", str(query))
    return ann.subscribe("big")


class _Reading:
    """What an ordinary client has read with the files of a subscription."""

    def __init__(self, folder: Path) -> None:
        self.settings = parse_librdkafka_file((folder / "librdkafka.conf").read_text())
        self._consumer = Consumer({**self.settings, "log_level": "0"})
        self._consumer.subscribe([r"^out\.big\..*"])
        self.records = 0

    def read(self, count: int) -> None:
        """Wait until so many results have arrived in all."""
        deadline = time.monotonic() + PATIENCE_S
        while self.records < count:
            assert time.monotonic() < deadline, f"{self.records} of {count} results"
            record = self._consumer.poll(1)
            if record is not None and record.error() is None:
                self.records += "fence" not in dict(record.headers() or [])

    def close(self) -> None:
        self._consumer.close()


def _produce(admin: Person, times: int) -> None:
    """Each call has a Kafka user of its own, which is done with at its end."""
    trades = admin.folder / "trades.csv"
    trades.write_text(TRADES)
    for _ in range(times):
        admin.run("produce", "london", str(trades))
    admin.run("produce", "newyork", str(trades))


@pytest.mark.long
def test_the_tour_goes_on_after_a_stop_and_after_a_crash(stack: Stack) -> None:
    stack.start()
    admin, ann = Person.at(stack, "admin"), Person.at(stack, "ann")
    admin.log_in(stack.settings.secadmin.first_password_file.read_text().strip())
    reading = _Reading(_prepare(admin, ann))
    kafka = stack.settings.kafka
    assert reading.settings["bootstrap.servers"] == kafka.users_bootstrap != kafka.bootstrap
    try:
        _produce(admin, 3)
        reading.read(3 * BIG_TRADES)
        assert stop_all(stack.state) == [SUPERVISOR, *part_names()]
        stack = _again(stack)
        _produce(admin, 1)
        reading.read(4 * BIG_TRADES)
        kill_everything(stack.state)
        stack = _again(stack)
        _produce(admin, 1)
        reading.read(5 * BIG_TRADES)
    finally:
        reading.close()
    assert ann.ask("explain", "ann", "READ TUPLE", "stream", "london")["allowed"] is True
    assert admin.ask("audit", "verify")["intact"] is True
