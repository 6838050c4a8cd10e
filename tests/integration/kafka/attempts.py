"""Attempts of a Kafka user at what it may have no right to, and what Kafka said."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from secadmin.kafka.wire.parked_fetch import ParkedFetch
from tests.integration.kafka.clients import DENIED_TOPIC

WAIT_S = 20
# None is any name, user and host; the stubs do not know that.
_ANYTHING: list[Any] = [ResourceType.ANY, None, ResourcePatternType.ANY, None, None]
ANY_ACL = AclBindingFilter(*[*_ANYTHING, AclOperation.ANY, AclPermissionType.ANY])


def reads(fetch: ParkedFetch, wait_s: float) -> bool:
    """Whether the fetch was let in; it is refused as not authorized, or this raises."""
    try:
        fetch.came_back(wait_s)
    except ValueError as refused:
        assert f"error {DENIED_TOPIC}" in str(refused)
        return False
    return True


def changes_of(client: AdminClient, topic: str) -> Iterator[tuple[str, Future[Any]]]:
    """Attempts at all that could be done to a topic; the last one would delete it."""
    place = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    yield "configure", client.incremental_alter_configs([place])[place]
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    yield "read the configuration of", client.describe_configs([asked])[asked]
    yield "enlarge", client.create_partitions([NewPartitions(topic, 2)])[topic]
    partition = TopicPartition(topic, 0, 0)
    yield "empty", client.delete_records([partition])[partition]
    yield "delete", client.delete_topics([topic])[topic]


def of_the_cluster(client: AdminClient, name: str) -> Iterator[tuple[str, Future[Any]]]:
    """Attempts at what would give the user rights."""
    everything = (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL, f"User:{name}", "*")
    acl = AclBinding(*everything, AclOperation.ALL, AclPermissionType.ALLOW)
    yield "grant", client.create_acls([acl])[acl]
    yield "revoke", client.delete_acls([ANY_ACL])[ANY_ACL]
    change = UserScramCredentialUpsertion(
        name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"a password of its own"
    )
    yield "change a user", client.alter_user_scram_credentials([change])[name]
    broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    yield "read the broker's configuration", client.describe_configs([broker])[broker]


def code_of(future: Future[Any]) -> int | None:
    """The error's code, None for success."""
    try:
        future.result(WAIT_S)
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return None
