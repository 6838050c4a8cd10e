"""AlterClientQuotas: sets the quotas of one Kafka user. The client library has no such call."""

from __future__ import annotations

from collections.abc import Mapping

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import float64, int8, int32, string

_ALTER_CLIENT_QUOTAS, _VERSION = 49, 0


def alter_user_quotas(
    connection: BrokerConnection, user: str, rates: Mapping[str, float | None]
) -> None:
    """Set the user's quotas by name. None deletes a quota, and is no error if there is none.

    Raises:
        OSError, ValueError: The broker did not answer, or answered with an error.
    """
    entity = int32(1) + string("user") + string(user)
    changes = b"".join(
        string(name) + float64(rate or 0.0) + int8(rate is None) for name, rate in rates.items()
    )
    body = int32(1) + entity + int32(len(rates)) + changes + int8(False)
    answer = connection.request(_ALTER_CLIENT_QUOTAS, _VERSION, body)
    answer.int32()
    for _ in range(answer.int32()):
        error, message = answer.int16(), answer.string()
        if error:
            raise ValueError(f"the broker does not set the quotas ({message or error})")
