"""Kafka away or unwilling: an error that says what to do, within seconds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from deploy.ports import free_port
from secadmin.kafka.acl import read_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import REQUEST_TIMEOUT_S, AdminClients, check_connection
from secadmin.kafka.fence import Fence
from secadmin.kafka.fence_writer import FenceWriter, Partition
from secadmin.kafka.principals import Principals
from secadmin.kafka.replicas import Replicas
from secadmin.kafka.topics import Topics, TopicSpec
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.connections import BrokerConnections
from tests.integration.brokers import embedded_only

# On a busy machine; the client's own patience is a minute.
LATE_S = 25.0
Call = Callable[[AdminClients, KafkaSettings], object]


def _acls(admins: AdminClients, to: KafkaSettings) -> Acls:
    return Acls(admins, BrokerConnections(to))


def _topics(admins: AdminClients, to: KafkaSettings) -> Topics:
    return Topics(admins, to, BrokerConnections(to))


def _put_up(admins: AdminClients, to: KafkaSettings) -> None:
    connections = BrokerConnections(to)
    host, _, port = to.bootstrap.rpartition(":")
    broker = {1: BrokerAddress(host, int(port))}
    fence = Fence(admins, Replicas(connections, 1), FenceWriter(to), connections)
    fence.put_up(["out.x.y"], lambda: broker)


_CALLS: dict[str, Call] = {
    "check": lambda admins, _: check_connection(admins),
    "create a topic": lambda admins, to: _topics(admins, to).create([TopicSpec("in.x")]),
    "list topics": lambda admins, to: _topics(admins, to).list_names(),
    "end offsets": lambda admins, to: _topics(admins, to).end_offsets(["in.x"]),
    "create a principal": lambda admins, _: Principals(admins).create("output-x"),
    "delete a principal": lambda admins, _: Principals(admins, removes=True).delete("output-x"),
    "list principals": lambda admins, _: Principals(admins).list_names(),
    "grant": lambda admins, to: _acls(admins, to).grant(read_acls("x", "out.x.y")),
    "revoke": lambda admins, to: _acls(admins, to).revoke_topics({"out.x.y": ["x"]}),
    "list ACLs": lambda admins, to: _acls(admins, to).list_all(),
    "fence": _put_up,
    "write a fence": lambda _, to: FenceWriter(to).write({Partition("out.x.y", 0): 0}, []),
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a call ended, and after how many seconds."""

    error: Exception | None
    took_s: float


def _outcome(call: Call, to: KafkaSettings) -> Outcome:
    begin, error = time.monotonic(), None
    try:
        call(AdminClients.open(to), to)
    except Unavailable as failure:
        error = failure
    return Outcome(error, time.monotonic() - begin)


@pytest.fixture(scope="module")
def outcomes(settings: KafkaSettings) -> dict[str, Outcome]:
    """All calls at once, to a port where nobody listens: each waits for its whole time."""
    nowhere = dataclasses.replace(settings, bootstrap=f"localhost:{free_port()}")
    with ThreadPoolExecutor(len(_CALLS)) as pool:
        runs = {name: pool.submit(_outcome, call, nowhere) for name, call in _CALLS.items()}
    return {name: run.result() for name, run in runs.items()}


@embedded_only
@pytest.mark.parametrize("name", _CALLS)
def test_kafka_away(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert isinstance(outcome.error, Unavailable)
    assert outcome.error.detail.startswith("cannot ")
    assert outcome.took_s < REQUEST_TIMEOUT_S + LATE_S


def test_a_wrong_password(settings: KafkaSettings, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("wrong")
    account = KafkaAccount(settings.secadmin.username, file)
    wrong = dataclasses.replace(settings, secadmin=account)
    refused = _outcome(lambda admins, _: check_connection(admins), wrong)
    assert isinstance(refused.error, Unavailable)
    assert refused.took_s < REQUEST_TIMEOUT_S + LATE_S
    host, _, port = settings.bootstrap.rpartition(":")
    with pytest.raises(Unavailable, match="password file"):
        BrokerConnection(BrokerAddress(host, int(port)), wrong)
