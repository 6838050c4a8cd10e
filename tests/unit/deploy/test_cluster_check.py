"""What is dangerous in a broker's settings."""

import pytest

from deploy.broker_memory import LONGEST_REQUEST_BYTES, RequestMemory
from deploy.broker_properties import USERS_LISTENER
from deploy.cluster_check import dangers, replication_warnings

KAFKAS = {
    "socket.request.max.bytes": "104857600",
    "queued.max.request.bytes": "-1",
    "connections.max.idle.ms": "600000",
    "max.connections": "2147483647",
    "advertised.listeners": "USERS://k1:9093,OWN://k1:9094",
}
POOL = str(100 * 104857600)


def _ours() -> dict[str, str]:
    listeners = {"advertised.listeners": f"{USERS_LISTENER}://localhost:19092,P://localhost:1"}
    return {**KAFKAS, **RequestMemory().properties(USERS_LISTENER), **listeners}


def test_the_embedded_brokers_are_not() -> None:
    assert list(dangers(_ours(), {"19092"})) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "queued.max.request.bytes sets no limit"),
        ({"queued.max.request.bytes": POOL}, "users' connections (2147483647) times"),
        ({"queued.max.request.bytes": POOL, "max.connections": "100"}, "users' connections (100)"),
        ({"allow.everyone.if.no.acl.found": "true"}, "allow.everyone.if.no.acl.found lets"),
        ({"socket.request.max.bytes": str(LONGEST_REQUEST_BYTES - 1)}, "is too little"),
        ({"connections.max.idle.ms": "-1"}, "keeps silent connections"),
        ({"connections.max.idle.ms": "600001"}, "keeps silent connections"),
        ({"unclean.leader.election.enable": "true"}, "lets a broker lead that lacks"),
        ({"transaction.max.timeout.ms": "900000"}, "900000 lets a sender's open transaction"),
    ],
)
def test_others_may_be(settings: dict[str, str], told: str) -> None:
    assert any(told in danger for danger in dangers({**KAFKAS, **settings}, {"9093"}))


@pytest.mark.parametrize("limit", ["listener.name.users.max.connections", "max.connections"])
def test_a_limit_of_connections_that_leaves_memory_is_enough(limit: str) -> None:
    settings = {**KAFKAS, "queued.max.request.bytes": POOL, limit: "99"}
    assert list(dangers(settings, {"9093"})) == []


REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "controller.socket.timeout.ms": "3000",
}


def test_several_brokers_that_replicate_are_not() -> None:
    assert list(replication_warnings(3, dict.fromkeys((1, 2, 3), REPLICATED))) == []
    assert list(replication_warnings(1, {1: {}})) == []


@pytest.mark.parametrize(
    ("replication", "brokers", "told"),
    [
        (3, {1: REPLICATED, 2: REPLICATED}, "needs as many brokers, and 2 are alive"),
        (1, {1: REPLICATED, 2: REPLICATED}, "replication = 1 in [kafka] keeps"),
        (2, {1: REPLICATED, 2: {}}, "broker 2: offsets.topic.replication.factor"),
        (2, {1: REPLICATED, 2: {}}, "broker 2: transaction.state.log.replication.factor"),
        (
            2,
            {1: REPLICATED, 2: {**REPLICATED, "controller.socket.timeout.ms": "30000"}},
            "broker 2: controller.socket.timeout.ms = 30000 keeps rights from being taken",
        ),
    ],
)
def test_what_stands_on_one_broker_is_told(
    replication: int, brokers: dict[int, dict[str, str]], told: str
) -> None:
    assert any(told in warning for warning in replication_warnings(replication, brokers))
