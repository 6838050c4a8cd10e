"""What the tests know of a broker, whichever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from catalog.settings import KafkaAccount, KafkaSettings
from deploy.broker_clients import ClientConfig
from deploy.credentials import Credentials, ensure_credentials
from deploy.settings import AUDIT_USER

EMBEDDED, CONTAINER = "embedded", "container"

# The heap of the broker that tests share: with it several hundred connections of users are let in.
HEAP_MB = 4096

# For tests of the embedded broker's process and files, and for those that no broker matters to.
embedded_only = pytest.mark.parametrize("broker", [EMBEDDED], indirect=True)


class Broker(Protocol):
    """A running broker with the platform's accounts, reached over TLS with SCRAM.

    Attributes:
        secadmin: Credentials of the platform's administrator, a superuser of this broker.
        ingest: Credentials of the engine that ingests, with no rights until granted.
        query: Credentials of the engines that run queries, likewise.
    """

    secadmin: Credentials
    ingest: Credentials
    query: Credentials

    @property
    def bootstrap(self) -> str:
        """`host:port` for users."""

    @property
    def platform_bootstrap(self) -> str:
        """`host:port` for the platform's own clients."""

    @property
    def port(self) -> int:
        """The users' port on the loopback interface."""

    @property
    def ca_file(self) -> Path:
        """The CA certificate that clients trust."""

    def client_config(self, username: str, password: str) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `username`, as users do."""

    def admin_config(self) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `secadmin`, as the platform does."""


def kafka_settings(broker: Broker) -> KafkaSettings:
    """The broker as the platform's settings describe it."""
    audit = ensure_credentials(broker.secadmin.password_file.parent, AUDIT_USER)
    return KafkaSettings(
        bootstrap=broker.platform_bootstrap,
        clients_bootstrap=broker.bootstrap,
        removes_users=True,
        ca_file=broker.ca_file,
        secadmin=KafkaAccount(broker.secadmin.username, broker.secadmin.password_file),
        ingest=KafkaAccount(broker.ingest.username, broker.ingest.password_file),
        query=KafkaAccount(broker.query.username, broker.query.password_file),
        audit=KafkaAccount(audit.username, audit.password_file),
    )
