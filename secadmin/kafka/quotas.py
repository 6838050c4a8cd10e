"""Quotas: how many bytes a second the principal of an access may write and fetch.

Each quota is for one user. A default for all users would limit the platform's own accounts too.
"""

from __future__ import annotations

from secadmin.kafka.wire.client_quotas import alter_user_quotas
from secadmin.kafka.wire.connections import BrokerConnections

_PRODUCED, _FETCHED = "producer_byte_rate", "consumer_byte_rate"


class Quotas:
    """Sets quotas of the cluster's users. Any broker passes a change on to the controller."""

    def __init__(
        self,
        connections: BrokerConnections,
        produced_bytes_per_s: int,
        fetched_bytes_per_s: int,
    ) -> None:
        """Every principal gets these rates, at each broker."""
        self._connections = connections
        self._rates = {
            _PRODUCED: float(produced_bytes_per_s),
            _FETCHED: float(fetched_bytes_per_s),
        }

    def give(self, principal: str) -> None:
        """Limit the principal to the rates. Raises Unavailable."""
        self._alter(principal, dict(self._rates))

    def take_back(self, principal: str) -> None:
        """Delete the principal's quotas, if it has any. Raises Unavailable."""
        self._alter(principal, dict.fromkeys(self._rates))

    def _alter(self, principal: str, rates: dict[str, float | None]) -> None:
        self._connections.ask(
            f"set the quotas of {principal}",
            lambda broker: alter_user_quotas(broker, principal, rates),
        )
