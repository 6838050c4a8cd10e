"""The meaning of a Kafka client's errors for the user of an access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from catalog.errors import NotAuthenticated, PlatformError, Unavailable
from secadmin.cli.api import UntrustedServerError

ENDED = "the access has ended (logout, expiry, a role taken, or unsubscribed); make a new one"
NOTHING = (
    "the access has ended, or it may read nothing now: `secadmin accesses` lists it, and where "
    "`active` is no, its user lacks READ TUPLE on what the query reads. A quarantine also needs "
    "the roles and companies that the stream's records name, and roles without a policy there"
)
_LOST = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE})


def kafka_error(error: KafkaError) -> PlatformError:
    """The PlatformError for an error of a Kafka client."""
    code = error.code()
    if code in {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}:
        return NotAuthenticated(ENDED)
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        # An access that may read nothing loses its right to groups, too, within a minute.
        return NotAuthenticated(NOTHING)
    if code == KafkaError._SSL:
        return UntrustedServerError("the access's CA does not vouch for a broker's certificate")
    if code in _LOST:
        return Unavailable("no Kafka broker answers; is it running?")
    return PlatformError(f"Kafka: {error.str()}")


def is_ended(error: KafkaError) -> bool:
    """Say whether the error means that the access has ended."""
    return isinstance(kafka_error(error), NotAuthenticated | UntrustedServerError)


def open_client(make: Callable[[dict[str, Any]], Any], settings: dict[str, Any]) -> Any:
    """A Kafka client with the settings. Raises PlatformError if they are not usable."""
    try:
        # Its own log goes to stderr in its own words; what matters comes as an error.
        return make({**settings, "log_level": 0})
    except (KafkaException, ValueError, TypeError) as error:
        detail = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise PlatformError(f"the Kafka client refuses its settings: {detail}") from None
