"""Quotas: how many bytes a second a principal that was given out may write and fetch.

Each is set for the one user. A default for all users would bind the platform's own accounts, too.
"""

from __future__ import annotations

from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.wire.client_quotas import alter_user_quotas
from secadmin.kafka.wire.connection import network_errors
from secadmin.kafka.wire.connections import BrokerConnections

_PRODUCED, _FETCHED = "producer_byte_rate", "consumer_byte_rate"


class Quotas:
    """The quotas of the cluster's users. Any broker passes a change on to the controller."""

    def __init__(
        self,
        admins: AdminClients,
        connections: BrokerConnections,
        produced_bytes_per_s: int,
        fetched_bytes_per_s: int,
    ) -> None:
        """The rates are those that every principal gets, at each broker."""
        self._admins = admins
        self._connections = connections
        self._rates = {
            _PRODUCED: float(produced_bytes_per_s),
            _FETCHED: float(fetched_bytes_per_s),
        }

    def give(self, principal: str) -> None:
        """Bind the principal to the rates. Raises Unavailable."""
        self._alter(principal, dict(self._rates))

    def take_back(self, principal: str) -> None:
        """Delete what binds the principal, if anything does. Raises Unavailable."""
        self._alter(principal, dict.fromkeys(self._rates))

    def _alter(self, principal: str, rates: dict[str, float | None]) -> None:
        address = next(iter(live_brokers(self._admins).values()))
        with (
            network_errors(f"set the quotas of {principal}"),
            self._connections.lent(address) as connection,
        ):
            alter_user_quotas(connection, principal, rates)
