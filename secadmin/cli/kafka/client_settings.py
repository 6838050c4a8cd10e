"""The settings with which a Kafka client uses an access, for Java and for librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from catalog.broker_patience import ANSWER_MS
from secadmin.cli.kafka.access import Access

# A consumer follows its own moves between classes as fast as it looks for new topics.
_REFRESH_MS = "1000"
_SENDING = {"acks": "all", "enable.idempotence": "true"}
# All that a file for librdkafka may set. The library knows others that load code or write files.
LIBRDKAFKA_NAMES = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.offset.reset",
        "bootstrap.servers",
        "broker.address.family",
        "enable.idempotence",
        "group.id",
        "group.protocol",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.timeout.ms",
        "ssl.ca.location",
        "topic.metadata.refresh.interval.ms",
    }
)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def java_settings(access: Access) -> dict[str, str]:
    """Settings of the Java client. The CA is inside, so the file can be moved."""
    login = f'username="{_jaas(access.principal)}" password="{_jaas(access.secret)}"'
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"{_SCRAM} required {login};",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": access.ca_pem,
        "metadata.max.age.ms": _REFRESH_MS,
    }
    if access.group is None:
        return {**settings, **_SENDING, "request.timeout.ms": str(ANSWER_MS)}
    return {
        **settings,
        "group.id": access.group,
        # With the newer protocol a client did not find its new topic after a move.
        "group.protocol": "classic",
        "allow.auto.create.topics": "false",
        # A new topic is read from its start, so that no record is missed.
        "auto.offset.reset": "earliest",
    }


def librdkafka_settings(access: Access) -> dict[str, str]:
    """Settings of librdkafka's clients, all but the CA: a file for some, a text for others."""
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": access.principal,
        "sasl.password": access.secret,
        "topic.metadata.refresh.interval.ms": _REFRESH_MS,
    }
    if access.bootstrap.startswith("localhost:"):
        # The embedded broker listens on IPv4, and the name may mean IPv6 first.
        settings["broker.address.family"] = "v4"
    if access.group is None:
        return {**settings, **_SENDING, "socket.timeout.ms": str(ANSWER_MS)}
    return {
        **settings,
        "group.id": access.group,
        "group.protocol": "classic",
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "earliest",
    }


def librdkafka_file(access: Access, ca_file: Path) -> str:
    """Text of a file for `kcat -F`. Each setting has a line, and nothing is escaped."""
    settings = {**librdkafka_settings(access), "ssl.ca.location": str(ca_file)}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def parse_librdkafka_file(text: str) -> dict[str, str]:
    """The settings in such a file; comments and empty lines are skipped."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def properties_file(settings: Mapping[str, str]) -> str:
    """Text of a Java properties file."""
    return "".join(f"{name}={_property(value)}\n" for name, value in settings.items())


def _property(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\r", "").rstrip("\n").replace("\n", "\\n")
    # Java would skip a space at the beginning.
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _jaas(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
