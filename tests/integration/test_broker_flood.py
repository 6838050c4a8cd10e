"""Whatever users do on their listener, the platform gets in, takes away, and proves it in time."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from deploy.broker import BrokerSettings, EmbeddedBroker
from deploy.broker_clients import can_log_in
from deploy.broker_memory import LONGEST_REQUEST_BYTES, RequestMemory
from deploy.ports import LOOPBACK
from deploy.runtime import Runtime
from secadmin.kafka.cluster import Cluster
from secadmin.kafka.principals import new_principal_name
from secadmin.kafka.topics import DAY_MS
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from tests.integration.brokers import kafka_settings
from tests.integration.kafka.clients import until

HUNDRED_MB = 100_000_000
IN_TIME_S = 10.0
TOPIC = "out.flooded.1"
_AT_ONCE = 24


@pytest.fixture
def own(runtime: Runtime, tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A running broker that nobody else needs."""
    with EmbeddedBroker(BrokerSettings(tmp_path, 0, runtime.java, runtime.jars.broker)) as broker:
        yield broker


def test_claims_and_silence_keep_nobody_from_revoking(own: EmbeddedBroker, tmp_path: Path) -> None:
    settings = kafka_settings(own)
    pid = own.pid
    cluster = Cluster(settings, lambda _: nullcontext())
    cluster.open_classes({TOPIC: DAY_MS})
    reader = new_principal_name("output")
    password = tmp_path / "password"
    password.write_text(cluster.create_principal(reader))
    address = BrokerAddress("localhost", own.port)
    as_reader = replace(settings, secadmin=KafkaAccount(reader, password))
    with ExitStack() as held:

        def claim(size: int) -> bool:
            """Log in as a user, and claim a request of that size: four bytes of it."""
            with contextlib.suppress(OSError, Unavailable):
                connection = BrokerConnection(address, as_reader)
                held.callback(connection.close)
                connection._socket.sendall(size.to_bytes(4))
                return True
            return False

        assert all(_at_once(claim, [HUNDRED_MB] * 12))
        _revoke(settings, reader)
        assert sum(_at_once(claim, [HUNDRED_MB] * 200)) > 100
        _revoke(settings, reader)
        # The longest that are taken at all, as many as users may have, and more that say nothing.
        claimed = sum(_at_once(claim, [LONGEST_REQUEST_BYTES] * RequestMemory().users_connections))
        assert claimed > 100
        for _ in range(200):
            silent = held.enter_context(socket.socket())
            # Once all places are taken, connections queue up before the broker.
            silent.setblocking(False)
            silent.connect_ex((LOOPBACK, own.port))
        _revoke(settings, reader)
    assert own.pid == pid
    assert "OutOfMemory" not in own.log.read_text()
    # They are gone, and users get in again.
    config = own.client_config(reader, password.read_text())
    until(lambda: can_log_in(config), "to be let in", 60)
    cluster.close()


def _at_once(step: Callable[[int], bool], values: list[int]) -> list[bool]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(step, values))


def _revoke(settings: KafkaSettings, reader: str) -> None:
    """What a SecAdmin does that has just started: log in, let in, take away, fence."""
    started = time.monotonic()
    cluster = Cluster(settings, lambda _: nullcontext())
    cluster.allow_read({TOPIC: [reader]})
    cluster.withdraw({TOPIC: [reader]}, {})
    cluster.close()
    assert time.monotonic() - started < IN_TIME_S
