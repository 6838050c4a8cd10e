"""DescribeAcls: whether a broker itself still lists ACLs that match a filter."""

from __future__ import annotations

from secadmin.kafka.acl_filter import AclFilter
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, string

_DESCRIBE_ACLS, _VERSION = 29, 1


def broker_lists(connection: BrokerConnection, matching: AclFilter) -> bool:
    """Whether the broker itself lists any ACL that matches.

    Raises:
        OSError, ValueError: The broker did not answer, or answered with an error.
    """
    # The client library's enumerations have the protocol's own numbers.
    body = (
        int8(matching.resource.value)
        + string(matching.name)
        + int8(matching.pattern.value)
        + string(matching.principal)
        + string(matching.host)
        + int8(matching.operation.value)
        + int8(matching.permission.value)
    )
    return _resources(connection.request(_DESCRIBE_ACLS, _VERSION, body)) > 0


def _resources(answer: Reader) -> int:
    """How many resources the answer lists ACLs of."""
    answer.int32()
    error, message = answer.int16(), answer.string()
    if error:
        raise ValueError(f"the broker does not list its ACLs ({message or error})")
    return answer.int32()
