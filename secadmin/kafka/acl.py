"""ACLs as values. The platform grants literal names, and prefixes that belong to one principal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from secadmin.kafka.topics import is_sent_topic

USER = "User:"
"""What Kafka writes before the name of a user."""


class Operation(StrEnum):
    """The operations that the platform's ACLs allow. In Kafka each of them implies DESCRIBE."""

    READ = "READ"
    WRITE = "WRITE"


@dataclass(frozen=True, slots=True, order=True)
class TopicAcl:
    """The principal (without `User:`) may do the operation on that one topic, from any host."""

    principal: str
    topic: str
    operation: Operation


@dataclass(frozen=True, slots=True, order=True)
class GroupAcl:
    """The principal may use consumer groups whose names begin with the prefix."""

    principal: str
    prefix: str


@dataclass(frozen=True, slots=True, order=True)
class TransactionAcl:
    """The principal may write in transactions whose ids begin with the prefix."""

    principal: str
    prefix: str


@dataclass(frozen=True, slots=True, order=True)
class ForeignAcl:
    """An ACL of a form that the platform never grants. The fields have Kafka's names."""

    principal: str
    host: str
    resource: str
    name: str
    pattern: str
    operation: str
    permission: str


Acl = TopicAcl | GroupAcl | TransactionAcl | ForeignAcl


def group_prefix(principal: str) -> str:
    """The prefix of the principal's consumer groups, and of the ids of its transactions.

    A principal's name has no dot, so no principal's prefix is the beginning of another's.
    """
    return f"{principal}."


def read_acls(principal: str, topic: str) -> frozenset[Acl]:
    """The ACLs that a reader of the topic needs: READ on the topic and on its own groups."""
    return frozenset(
        {
            TopicAcl(principal, topic, Operation.READ),
            GroupAcl(principal, group_prefix(principal)),
        }
    )


def write_acls(principal: str, topic: str) -> frozenset[Acl]:
    """The ACLs that a writer of the topic needs, also with an idempotent producer (Kafka 3.0)."""
    return frozenset({TopicAcl(principal, topic, Operation.WRITE)})


def send_acls(principal: str, topic: str) -> frozenset[Acl]:
    """The ACLs that a sender needs to write its topic, also in transactions of its own."""
    own = TransactionAcl(principal, group_prefix(principal))
    return write_acls(principal, topic) | {own}


def bans(principal: str, topic: str) -> frozenset[Acl]:
    """The ACLs that keep the principal from the topic, whatever else allows it.

    For Kafka a denial goes before everything that allows. A sender may write in no transaction any
    more, either.
    """
    denied = (USER + principal, "*")
    found: set[Acl] = {ForeignAcl(*denied, "TOPIC", topic, "LITERAL", "ALL", "DENY")}
    if is_sent_topic(topic):
        prefix = group_prefix(principal)
        found.add(ForeignAcl(*denied, "TRANSACTIONAL_ID", prefix, "PREFIXED", "ALL", "DENY"))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class EngineAccounts:
    """The principals of the engines: of the one that ingests, and of all that run queries.

    They have rights on topics and no others. They use no groups of consumers, and a writer without
    transactions needs WRITE alone.
    """

    ingest: str
    query: str

    def stream_acls(self, topic: str) -> frozenset[TopicAcl]:
        """What engines need on a topic of a stream.

        Ingest reads `in.*`, and `lab.<stream>` to see what is there. Queries only read. Ingest
        also writes ticks to `in.*`, and reads their echoes (`secfilter.ticker`).
        """
        ingest, query = partial(TopicAcl, self.ingest, topic), partial(TopicAcl, self.query, topic)
        match topic.partition(".")[0]:
            case "in" | "time":
                return frozenset({ingest(Operation.READ), ingest(Operation.WRITE)})
            case "lab":
                own = {ingest(Operation.READ), ingest(Operation.WRITE)}
                return frozenset({*own, query(Operation.READ)})
            case "quarantine" | "parked":
                return frozenset({ingest(Operation.WRITE)})
            case _:
                return frozenset()

    def output_acls(self, topic: str) -> frozenset[TopicAcl]:
        """What engines need on a topic of an output.

        Queries write it, and other queries read `lab.<output>`. Queries also write and read the
        echoes of ticks (`secfilter.output_ticker`). Ingest has nothing to do there.
        """
        query = partial(TopicAcl, self.query, topic)
        match topic.partition(".")[0]:
            case "lab" | "time":
                return frozenset({query(Operation.READ), query(Operation.WRITE)})
            case "out":
                return frozenset({query(Operation.WRITE)})
            case _:
                return frozenset()

    def any_acls(self, topic: str) -> frozenset[TopicAcl]:
        """What engines may need on a topic as far as its name tells, which is not whose it is."""
        return self.stream_acls(topic) | self.output_acls(topic)

    def has(self, principal: str) -> bool:
        """Whether the principal is one of them."""
        return principal in {self.ingest, self.query}


def to_binding(acl: Acl) -> AclBinding:
    """The ACL as an object of the client library."""
    if isinstance(acl, TopicAcl):
        place = (ResourceType.TOPIC, acl.topic, ResourcePatternType.LITERAL)
        right = (AclOperation[acl.operation], AclPermissionType.ALLOW)
        return AclBinding(*place, USER + acl.principal, "*", *right)
    if isinstance(acl, GroupAcl):
        place = (ResourceType.GROUP, acl.prefix, ResourcePatternType.PREFIXED)
        right = (AclOperation.READ, AclPermissionType.ALLOW)
        return AclBinding(*place, USER + acl.principal, "*", *right)
    if isinstance(acl, TransactionAcl):
        place = (ResourceType.TRANSACTIONAL_ID, acl.prefix, ResourcePatternType.PREFIXED)
        right = (AclOperation.WRITE, AclPermissionType.ALLOW)
        return AclBinding(*place, USER + acl.principal, "*", *right)
    return AclBinding(
        ResourceType[acl.resource],
        acl.name,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def from_binding(binding: AclBinding) -> Acl:
    """The value of an ACL that Kafka lists. A ForeignAcl keeps the principal as Kafka writes it."""
    operation = AclOperation(binding.operation).name
    candidates: list[Acl] = []
    if binding.principal.startswith(USER):
        principal = binding.principal.removeprefix(USER)
        candidates.append(GroupAcl(principal, binding.name))
        candidates.append(TransactionAcl(principal, binding.name))
        if operation in Operation.__members__:
            candidates.append(TopicAcl(principal, binding.name, Operation[operation]))
    for acl in candidates:
        # One comparison covers every field: an ACL that differs in any field is foreign. The name
        # `*` is foreign too, because Kafka reads it as every topic.
        if binding.name != "*" and to_binding(acl) == binding:
            return acl
    return ForeignAcl(
        binding.principal,
        binding.host,
        ResourceType(binding.restype).name,
        binding.name,
        ResourcePatternType(binding.resource_pattern_type).name,
        operation,
        AclPermissionType(binding.permission_type).name,
    )
