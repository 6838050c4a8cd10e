"""What of a cluster's settings is dangerous: with it users could keep the platform from revoking.

The embedded broker's own settings (`deploy.broker_memory`, `deploy.broker_properties`) bear it. Of
a cluster of somebody else the platform can only read them, and tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from catalog.settings import KafkaAccount, KafkaSettings
from deploy.broker_cluster import LONGEST_SILENCE_MS
from deploy.broker_memory import LONGEST_REQUEST_BYTES

_TIMEOUT_S = 10.0
_LONGEST_IDLE_MS = 600_000
_LONGEST_TRANSACTION_MS = 60_000
_TRANSACTION = "transaction.max.timeout.ms"
_INNER_TOPICS = ("offsets.topic", "transaction.state.log")
_NO_LIMIT = 2**31 - 1
_SILENCE = "controller.socket.timeout.ms"
_WHERE = "see deploy/README.md, An existing Kafka"


def cluster_warnings(kafka: KafkaSettings) -> list[str]:
    """One line for each danger: settings of brokers, engines' accounts, what cannot be read."""
    found = []
    if kafka.users_bootstrap == kafka.bootstrap:
        found.append(
            "users and the platform share a listener of Kafka: give the platform one of its own in "
            f"`bootstrap`, and name the users' in `clients_bootstrap` ({_WHERE})"
        )
    try:
        brokers = _broker_settings(kafka)
        found += _engines_warnings(kafka)
    except KafkaException as error:
        reason = error.args[0].str() if error.args else "no answer"
        found.append(f"the settings of Kafka's brokers cannot be read ({reason}): {_WHERE}")
        return found
    found += replication_warnings(kafka.replication, brokers)
    ports = {address.rpartition(":")[2] for address in kafka.users_bootstrap.split(",")}
    for broker, settings in sorted(brokers.items()):
        found += (f"Kafka's broker {broker}: {danger}" for danger in dangers(settings, ports))
    return found


def replication_warnings(
    replication: int, brokers: Mapping[int, Mapping[str, str]]
) -> Iterator[str]:
    """What of several brokers, by their settings, does not bear that one is lost, or hangs."""
    if replication > len(brokers):
        yield (
            f"replication = {replication} in [kafka] needs as many brokers, and {len(brokers)} are "
            "alive: no topic can be made"
        )
    if len(brokers) < 2:
        return
    if replication < 2:
        yield "replication = 1 in [kafka] keeps each record on one broker: set it to 3"
    for broker, settings in sorted(brokers.items()):
        for topic in _INNER_TOPICS:
            if int(settings.get(f"{topic}.replication.factor", 1)) < 2:
                yield (
                    f"Kafka's broker {broker}: {topic}.replication.factor keeps these records on "
                    "one broker: set it to 3"
                )
        if (silence := int(settings.get(_SILENCE, 0))) > LONGEST_SILENCE_MS:
            yield (
                f"Kafka's broker {broker}: {_SILENCE} = {silence} keeps rights from being taken "
                f"for so long when a controller hangs: set it to {LONGEST_SILENCE_MS}"
            )


def dangers(settings: Mapping[str, str], users_ports: set[str]) -> Iterator[str]:
    """What is dangerous in a broker's settings; `users_ports` are those that users connect to."""
    if settings.get("allow.everyone.if.no.acl.found", "false") == "true":
        yield "allow.everyone.if.no.acl.found lets everybody read what has no ACL: set it to false"
    if settings.get("unclean.leader.election.enable", "false") == "true":
        yield (
            "unclean.leader.election.enable lets a broker lead that lacks acknowledged records: "
            "set it to false"
        )
    longest = int(settings["socket.request.max.bytes"])
    if longest < LONGEST_REQUEST_BYTES:
        yield (
            f"socket.request.max.bytes = {longest} is too little for the platform's records: "
            f"set it to {LONGEST_REQUEST_BYTES} at least"
        )
    connections = _users_connections(settings, users_ports)
    pool = int(settings["queued.max.request.bytes"])
    if pool <= 0:
        yield "queued.max.request.bytes sets no limit, so requests may take all memory: set one"
    elif connections * longest >= pool:
        yield (
            f"users' connections ({connections}) times socket.request.max.bytes ({longest}) are "
            f"more than queued.max.request.bytes ({pool}): lower max.connections of their listener"
        )
    idle = int(settings["connections.max.idle.ms"])
    if not 0 < idle <= _LONGEST_IDLE_MS:
        yield (
            f"connections.max.idle.ms = {idle} keeps silent connections: "
            f"set it to {_LONGEST_IDLE_MS} at most"
        )
    if (lasts := int(settings.get(_TRANSACTION, 0))) > _LONGEST_TRANSACTION_MS:
        yield (
            f"{_TRANSACTION} = {lasts} lets a sender's open transaction hold up the time of its "
            f"stream for so long: set it to {_LONGEST_TRANSACTION_MS}"
        )


def _users_connections(settings: Mapping[str, str], ports: set[str]) -> int:
    """How many connections users may have; without their listener, those of the whole broker."""
    most = int(settings.get("max.connections", _NO_LIMIT))
    limits = []
    for listener in settings.get("advertised.listeners", "").split(","):
        name, _, address = listener.partition("://")
        if address.rpartition(":")[2] in ports:
            own = settings.get(f"listener.name.{name.strip().lower()}.max.connections", _NO_LIMIT)
            limits.append(min(most, int(own)))
    return max(limits, default=most)


def _engines_warnings(kafka: KafkaSettings) -> list[str]:
    return [
        f"Kafka lets the user {account.username} do more than an engine needs: "
        f"it must be no super user ({_WHERE})"
        for account in (kafka.ingest, kafka.query)
        if _rules_the_cluster(kafka, account)
    ]


def _rules_the_cluster(kafka: KafkaSettings, account: KafkaAccount) -> bool:
    """Whether the account may do anything to the cluster itself; Kafka tells only itself that."""
    admin = AdminClient({**kafka.client_config(account), "log_level": 0})
    cluster: Any = admin.describe_cluster(
        include_authorized_operations=True, request_timeout=_TIMEOUT_S
    ).result(_TIMEOUT_S + 1)
    return bool(cluster.authorized_operations)


def _broker_settings(kafka: KafkaSettings) -> dict[int, dict[str, str]]:
    admin = AdminClient({**kafka.client_config(kafka.secadmin), "log_level": 0})
    cluster: Any = admin.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S + 1)
    found = {}
    for node in cluster.nodes:
        resource = ConfigResource(ResourceType.BROKER, str(node.id))
        (future,) = admin.describe_configs([resource], request_timeout=_TIMEOUT_S).values()
        found[node.id] = _values(future)
    return found


def _values(future: Future[Any]) -> dict[str, str]:
    entries = future.result(_TIMEOUT_S + 1)
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}
