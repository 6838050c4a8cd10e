"""The settings of the embedded broker: one combined KRaft node that speaks nothing but TLS."""

from dataclasses import dataclass
from pathlib import Path

from deploy.broker_memory import RequestMemory

SCRAM = "SCRAM-SHA-512"
BROKER_USER = "broker"
SECADMIN_USER = "secadmin"
# The engines: the one that ingests, and all that run queries.
INGEST_USER = "secfilter-ingest"
QUERY_USER = "secfilter-query"
USERS_LISTENER = "CLIENTS"
PLATFORM_LISTENER = "PLATFORM"
CONTROLLER_LISTENER = "CONTROLLER"
_LOGIN = "org.apache.kafka.common.security"

# Kafka reserves 128 MB of heap for compaction by default; this node compacts three small topics.
_SMALL_NODE = {
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # What is written in a transaction waits for its end, and so do the records behind it.
    "transaction.max.timeout.ms": "60000",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # One controller has nobody to gather changes for; a revocation is three changes in a row.
    "controller.quorum.append.linger.ms": "0",
}


@dataclass(frozen=True)
class Ports:
    """The ports on 127.0.0.1: for users, for the platform's own clients, for the controller."""

    users: int
    platform: int
    controller: int


@dataclass(frozen=True)
class NodeFiles:
    """What the settings point to: data folder, key store and CA, all absolute."""

    data: Path
    key_store: Path
    ca: Path


def broker_properties(
    ports: Ports, files: NodeFiles, broker_password: str, memory: RequestMemory
) -> dict[str, str]:
    """The broker's settings; they hold a password, so they belong in a private file.

    Args:
        ports: One for each listener.
        files: Data, key store and CA.
        broker_password: The broker's own password, for its log-in to itself.
        memory: What requests may take of the heap.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": str(files.data),
        **_listeners(ports),
        **_tls(files),
        **_logins(broker_password),
        **_authorization(),
        **memory.properties(USERS_LISTENER),
        **_SMALL_NODE,
    }


def _listeners(ports: Ports) -> dict[str, str]:
    controller = f"127.0.0.1:{ports.controller}"
    # Whatever users do on their listener, the platform's clients have one of their own to get in.
    clients = {USERS_LISTENER: ports.users, PLATFORM_LISTENER: ports.platform}
    listeners = [f"{name}://127.0.0.1:{port}" for name, port in clients.items()]
    # The name, not the address, because not every client compares addresses with the SAN.
    advertised = [f"{name}://localhost:{port}" for name, port in clients.items()]
    return {
        "listeners": ",".join([*listeners, f"{CONTROLLER_LISTENER}://{controller}"]),
        "advertised.listeners": ",".join(advertised),
        "listener.security.protocol.map": ",".join(
            f"{name}:SASL_SSL" for name in (*clients, CONTROLLER_LISTENER)
        ),
        "inter.broker.listener.name": PLATFORM_LISTENER,
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": controller,
    }


def _tls(files: NodeFiles) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.ca),
        "ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
    }


def _logins(password: str) -> dict[str, str]:
    login = f'username="{BROKER_USER}" password="{password}"'
    return {
        "sasl.enabled.mechanisms": SCRAM,
        "sasl.mechanism.inter.broker.protocol": SCRAM,
        **{
            f"listener.name.{name.lower()}.scram-sha-512.sasl.jaas.config": (
                f"{_LOGIN}.scram.ScramLoginModule required {login};"
            )
            for name in (USERS_LISTENER, PLATFORM_LISTENER)
        },
        # SCRAM users are in the log that the controller serves, so it cannot ask them of itself.
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": (
            f'{_LOGIN}.plain.PlainLoginModule required {login} user_{BROKER_USER}="{password}";'
        ),
    }


def _authorization() -> dict[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{BROKER_USER};User:{SECADMIN_USER}",
    }


def render(properties: dict[str, str]) -> str:
    """Text of a Java properties file; backslashes are the only thing that needs escaping here."""
    escaped = ((name, value.replace("\\", "\\\\")) for name, value in properties.items())
    return "".join(f"{name}={value}\n" for name, value in escaped)
