"""The settings of the embedded broker: one combined KRaft node that speaks nothing but TLS."""

from dataclasses import dataclass
from pathlib import Path

SCRAM = "SCRAM-SHA-512"
BROKER_USER = "broker"
SECADMIN_USER = "secadmin"
SECFILTER_USER = "secfilter"
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
class NodeFiles:
    """What the settings point to: data folder, key store and CA, all absolute."""

    data: Path
    key_store: Path
    ca: Path


def broker_properties(
    port: int, controller_port: int, files: NodeFiles, broker_password: str
) -> dict[str, str]:
    """The broker's settings; they hold a password, so they belong in a private file.

    Args:
        port: Port of the clients' listener on 127.0.0.1.
        controller_port: Port of the controller's listener on 127.0.0.1.
        files: Data, key store and CA.
        broker_password: The broker's own password, for its log-in to itself.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": str(files.data),
        **_listeners(port, controller_port),
        **_tls(files),
        **_logins(broker_password),
        **_authorization(),
        **_SMALL_NODE,
    }


def _listeners(port: int, controller_port: int) -> dict[str, str]:
    controller = f"127.0.0.1:{controller_port}"
    return {
        "listeners": f"CLIENTS://127.0.0.1:{port},CONTROLLER://{controller}",
        # The name, not the address, because not every client compares addresses with the SAN.
        "advertised.listeners": f"CLIENTS://localhost:{port}",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "CLIENTS",
        "controller.listener.names": "CONTROLLER",
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
        "listener.name.clients.scram-sha-512.sasl.jaas.config": (
            f"{_LOGIN}.scram.ScramLoginModule required {login};"
        ),
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
