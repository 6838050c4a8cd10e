"""DescribeAcls: the ACLs that one broker lists for a filter."""

from __future__ import annotations

from secadmin.kafka.acl_filter import AclFilter, ListedAcl
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, string

_DESCRIBE_ACLS, _VERSION = 29, 1


def broker_acls(connection: BrokerConnection, matching: AclFilter) -> list[ListedAcl]:
    """The matching ACLs that this broker lists, on all resources.

    Raises:
        OSError, ValueError: The broker did not answer, or answered with an error.
    """
    return _listed(connection.request(_DESCRIBE_ACLS, _VERSION, acl_fields(matching)))


def acl_fields(matching: AclFilter) -> bytes:
    """The fields of a filter, as all requests about ACLs have them."""
    # The client library's enumerations have the same numbers as the protocol.
    return (
        int8(matching.resource.value)
        + string(matching.name)
        + int8(matching.pattern.value)
        + string(matching.principal)
        + string(matching.host)
        + int8(matching.operation.value)
        + int8(matching.permission.value)
    )


def _listed(answer: Reader) -> list[ListedAcl]:
    answer.int32()
    error, message = answer.int16(), answer.string()
    if error:
        raise ValueError(f"the broker does not list its ACLs ({message or error})")
    found: list[ListedAcl] = []
    for _ in range(answer.int32()):
        answer.int8(), answer.string(), answer.int8()
        for _ in range(answer.int32()):
            principal, host = answer.string(), answer.string()
            found.append(ListedAcl(principal, host, answer.int8(), answer.int8()))
    return found
