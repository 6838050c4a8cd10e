"""CreateAcls and DeleteAcls: changes of ACLs, which a broker hands on to the controllers."""

from __future__ import annotations

from collections.abc import Sequence

from secadmin.kafka.acl_filter import AclFilter
from secadmin.kafka.wire.broker_acls import acl_fields
from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int32

_CREATE_ACLS, _DELETE_ACLS, _VERSION = 30, 31, 1


def create_acls(connection: BrokerConnection, acls: Sequence[AclFilter]) -> list[int]:
    """Create the ACLs, each of which its filter names whole. Gives Kafka's code for each.

    Raises:
        OSError, ValueError: The broker did not answer, or its answer cannot be read.
    """
    return read_codes(connection.request(_CREATE_ACLS, _VERSION, _all_of(acls)), len(acls))


def delete_acls(connection: BrokerConnection, filters: Sequence[AclFilter]) -> list[int]:
    """Delete all ACLs that match a filter. Gives Kafka's code for each filter.

    Raises:
        OSError, ValueError: The broker did not answer, or its answer cannot be read.
    """
    answer = connection.request(_DELETE_ACLS, _VERSION, _all_of(filters))
    return read_deletions(answer, len(filters))


def read_codes(answer: Reader, wanted: int) -> list[int]:
    """The codes of an answer. Raises ValueError if there are more or fewer than wanted."""
    answer.int32()
    codes = []
    for _ in range(_count(answer, wanted)):
        codes.append(answer.int16())
        answer.string()
    return codes


def read_deletions(answer: Reader, wanted: int) -> list[int]:
    """For each filter its code, or that of an ACL that was not deleted. Raises ValueError."""
    answer.int32()
    codes = []
    for _ in range(_count(answer, wanted)):
        own = [answer.int16()]
        answer.string()
        for _ in range(answer.int32()):
            own.append(answer.int16())
            answer.string(), answer.int8(), answer.string(), answer.int8()
            answer.string(), answer.string(), answer.int8(), answer.int8()
        codes.append(next((code for code in own if code), 0))
    return codes


def _all_of(filters: Sequence[AclFilter]) -> bytes:
    return int32(len(filters)) + b"".join(map(acl_fields, filters))


def _count(answer: Reader, wanted: int) -> int:
    if (found := answer.int32()) != wanted:
        raise ValueError(f"the broker answers {found} questions, and there were {wanted}")
    return found
