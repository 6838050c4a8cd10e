"""What a client needs to log in to the broker, and whether one can."""

from pathlib import Path
from typing import TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.broker_properties import SCRAM

ClientConfig: TypeAlias = dict[str, str | int | float | bool]


def client_config(bootstrap: str, ca: Path, username: str, password: str) -> ClientConfig:
    """Settings of a confluent-kafka client that logs in as `username` at `bootstrap`."""
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": SCRAM,
        "sasl.username": username,
        "sasl.password": password,
        "ssl.ca.location": str(ca),
        # The listener is bound to IPv4 alone, and `localhost` may name IPv6 first.
        "broker.address.family": "v4",
    }


def can_log_in(config: ClientConfig) -> bool:
    """Whether a client so configured is let in, within a few seconds."""
    quiet = {**config, "log_level": "0", "socket.timeout.ms": "5000"}
    try:
        return bool(AdminClient(quiet).list_topics(timeout=3).brokers)
    except KafkaException:
        return False
