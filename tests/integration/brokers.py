"""What the tests know of a broker, whichever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from deploy.broker_clients import ClientConfig
from deploy.credentials import Credentials

EMBEDDED, CONTAINER = "embedded", "container"

# For tests of the embedded broker's process and files, and for those that no broker matters to.
embedded_only = pytest.mark.parametrize("broker", [EMBEDDED], indirect=True)


class Broker(Protocol):
    """A running broker with the platform's two accounts, reached over TLS with SCRAM.

    Attributes:
        secadmin: Credentials of the platform's administrator, a superuser of this broker.
        secfilter: Credentials of the platform's engine, with no rights until granted.
    """

    secadmin: Credentials
    secfilter: Credentials

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""

    @property
    def port(self) -> int:
        """The clients' port on the loopback interface."""

    @property
    def ca_file(self) -> Path:
        """The CA certificate that clients trust."""

    def client_config(self, username: str, password: str) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `username`."""

    def admin_config(self) -> ClientConfig:
        """Settings of a confluent-kafka client that logs in as `secadmin`."""
