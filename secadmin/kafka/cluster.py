"""The cluster, as the control service uses it: topics, principals, ACLs and fence together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Protocol

from catalog.settings import KafkaSettings
from catalog.topics import (
    ECHO_TOPIC,
    HEAD_TOPIC,
    LABELLED_RETENTION_MS,
    RESULT_ECHO_TOPIC,
    lab_topic,
    parked_topic,
    quarantine_topic,
)
from catalog.user_limits import UserLimits
from secadmin.kafka.access import Granting, Lock, PrincipalsOf, TopicAccess
from secadmin.kafka.acl import (
    Acl,
    EngineAccounts,
    GroupAcl,
    TopicAcl,
    group_prefix,
    read_acls,
    send_acls,
    write_acls,
)
from secadmin.kafka.acls import Acls
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.connect import AdminClients, check_connection
from secadmin.kafka.fence import Fence
from secadmin.kafka.fence_writer import FenceWriter
from secadmin.kafka.head_topic import HeadTopic
from secadmin.kafka.principals import Principals
from secadmin.kafka.quotas import Quotas
from secadmin.kafka.reconcile import Reconciler, Taking, WantedAcl
from secadmin.kafka.replicas import Replicas
from secadmin.kafka.topics import DAY_MS, Topics, TopicSpec
from secadmin.kafka.wire.connections import BrokerConnections

QUARANTINE_RETENTION_MS = 30 * DAY_MS


class WantedAccess(Protocol):
    """What the catalog lets in: (principal, topic) pairs, and the topics that engines use.

    `reading` are the principals that may use groups, also those that read no topic for now.
    """

    @property
    def reading(self) -> Set[str]: ...

    @property
    def readers(self) -> Set[tuple[str, str]]: ...

    @property
    def writers(self) -> Set[tuple[str, str]]: ...

    @property
    def stream_topics(self) -> Set[str]: ...

    @property
    def output_topics(self) -> Set[str]: ...


class Cluster:
    """All work of the service in Kafka. Threads may share it."""

    def __init__(
        self,
        settings: KafkaSettings,
        lock: Lock,
        limits: UserLimits = UserLimits(),  # noqa: B008 - a frozen value
    ) -> None:
        """Connect as SecAdmin. `lock` gives a topic's lock; only reconciliation uses it.

        Raises Unavailable if Kafka cannot be reached.
        """
        self._admins = AdminClients.open(settings)
        check_connection(self._admins)
        self._writer = FenceWriter(settings)
        self._connections = BrokerConnections(settings)
        self._engines = EngineAccounts(settings.ingest.username, settings.query.username)
        self._audit_account = settings.audit.username
        self._topics = Topics(self._admins, settings, self._connections)
        self._principals = Principals(self._admins, removes=settings.removes_users)
        self._quotas = Quotas(
            self._connections,
            limits.produced_bytes_per_s,
            limits.fetched_bytes_per_s,
        )
        self._acls = Acls(self._admins, self._connections, settings.replication)
        self._replicas = Replicas(self._connections, settings.replication)
        fence = Fence(self._admins, self._replicas, self._writer, self._connections)
        self._access = TopicAccess(self._acls, fence, self._replicas, lock)
        self._reconciler = Reconciler(self._acls, self._topics, self._access, self._engines)
        for account in (settings.ingest, settings.query):
            self._principals.ensure(account)
        self.head_topic = HeadTopic(settings, self._topics, self._principals, self._acls)

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._connections.close()

    def create_stream_topics(self, stream: str, partitions: int, *, ruled: bool = False) -> None:
        """Create lab. and quarantine.<stream>; engines may use them as they need.

        Only a stream that is `ruled`, one with a label rule, gets parked.<stream>. The first stream
        may come before `create_common_topics`.
        """
        parked = TopicSpec(parked_topic(stream), partitions, LABELLED_RETENTION_MS)
        self._create(
            self._engines.stream_acls,
            # As its senders' topics have: a tuple stays in its partition, so its order is kept.
            TopicSpec(lab_topic(stream), partitions, LABELLED_RETENTION_MS),
            TopicSpec(quarantine_topic(stream), 1, QUARANTINE_RETENTION_MS),
            TopicSpec(ECHO_TOPIC),
            *([parked] if ruled else []),
        )

    def create_output_topics(self, output: str) -> None:
        """Create lab.<output>, for queries over it.

        The first output may come before `create_common_topics`.
        """
        lab = TopicSpec(lab_topic(output), 1, LABELLED_RETENTION_MS)
        self._create(self._engines.output_acls, lab, TopicSpec(RESULT_ECHO_TOPIC))

    def create_common_topics(self) -> None:
        """Create the topics that all streams, and all outputs, have in common."""
        self._create(self._engines.stream_acls, TopicSpec(ECHO_TOPIC))
        self._create(self._engines.output_acls, TopicSpec(RESULT_ECHO_TOPIC))

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        """Create delivery topics and let queries write them, where that is not done."""
        specs = (TopicSpec(topic, 1, kept_ms) for topic, kept_ms in retention_ms.items())
        self._create(self._engines.output_acls, *specs)

    def open_senders(self, partitions: Mapping[str, int]) -> None:
        """Create senders' topics and let ingest read them, where that is not done."""
        specs = (TopicSpec(topic, count) for topic, count in partitions.items())
        self._create(self._engines.stream_acls, *specs)

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Delete topics with the ACLs on them, and wait until they are gone."""
        self._acls.delete_on_topics(topics)
        self._topics.delete(topics)

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """By topic and partition, the offset that the next record will get."""
        found = self._topics.end_offsets(topics)
        return {topic: {str(p): end for p, end in ends.items()} for topic, ends in found.items()}

    def offsets_at(self, topics: Sequence[str], at: datetime) -> Mapping[str, Mapping[str, int]]:
        """By topic and partition, the offset of the first record that was written at `at` or later.

        It is that of the next record if there is none.
        """
        found = self._topics.offsets_at(topics, at)
        return {topic: {str(p): end for p, end in ends.items()} for topic, ends in found.items()}

    def partitions(self, topics: Sequence[str]) -> Mapping[str, int]:
        """The number of partitions of those of the topics that exist."""
        found = self._topics.describe(topics)
        return {topic: len(description.partitions) for topic, description in found.items()}

    def add_partitions(self, wanted: Mapping[str, int]) -> None:
        """Let each topic have at least so many partitions."""
        self._topics.add_partitions(wanted)

    def create_principal(self, name: str) -> str:
        """Create the SCRAM user with its quotas, and return its new random password."""
        # In this order: if the second step fails, the upkeep finds the user and deletes it.
        secret = self._principals.create(name).password
        self._quotas.give(name)
        return secret

    def principals(self) -> frozenset[str]:
        """All SCRAM users that are not closed."""
        return self._principals.list_names()

    def closed_principals(self) -> int:
        """The number of users that are closed and cannot be removed."""
        return self._principals.count_closed()

    def delete_principal(self, name: str) -> None:
        """Delete all ACLs and quotas of the SCRAM user, then remove or close the user."""
        self._acls.delete_of_principal(name)
        self._quotas.take_back(name)
        self._principals.delete(name)

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        """Let the principals read the topics. Each may use groups with its own prefix.

        See `Acls.grant` for what it gives and raises.
        """
        return self._acls.grant(_each(read_acls, principals_of))

    def allow_write(self, principals_of: PrincipalsOf) -> bool:
        """Let the principals write the topics, also in transactions of their own. As above."""
        return self._acls.grant(_each(send_acls, principals_of))

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        """See `TopicAccess.withdraw_locked`. The caller holds the topics' locks."""
        self._access.withdraw_locked(principals_of, banned)

    def restore_leftovers(self) -> None:
        """Reset the settings that a service left changed when it was killed during a fence."""
        self._access.restore_leftover_settings(self._topics.list_names())

    def reconcile(
        self, wanted: Callable[[], WantedAccess], taking: Taking, granting: Granting
    ) -> None:
        """Delete the ACLs that the catalog does not want, and add the missing ones.

        Each call of `wanted` reads the catalog again. `taking` records the topics to be fenced,
        and `granting` what is added.
        """

        def acls() -> frozenset[WantedAcl]:
            now = wanted()
            # Listed after Kafka's ACLs. Else the ACLs of a new topic could look unwanted.
            existing = self._topics.list_names()
            found: set[Acl] = set()
            for principal, topic in now.readers:
                found |= read_acls(principal, topic)
            for principal, topic in now.writers:
                found |= send_acls(principal, topic)
            for topic in now.stream_topics & existing:
                found |= self._engines.stream_acls(topic)
            for topic in now.output_topics & existing:
                found |= self._engines.output_acls(topic)
            if ECHO_TOPIC in existing:
                found |= self._engines.stream_acls(ECHO_TOPIC)
            if RESULT_ECHO_TOPIC in existing:
                found |= self._engines.output_acls(RESULT_ECHO_TOPIC)
            if HEAD_TOPIC in existing:
                found |= write_acls(self._audit_account, HEAD_TOPIC)
            groups = {GroupAcl(name, group_prefix(name)) for name in now.reading}
            return frozenset(acl for acl in found if isinstance(acl, TopicAcl)) | groups

        self._reconciler.reconcile(acls, taking, granting)

    def replenish(self) -> int:
        """Give topics that lost replicas new ones, some at a time: the number of their partitions.

        Raises Unavailable.
        """
        return self._replicas.replenish(live_brokers(self._connections))

    def _create(self, acls: Callable[[str], frozenset[TopicAcl]], *specs: TopicSpec) -> None:
        """Create the topics and grant what `acls` says for the name of each."""
        self._topics.create(specs)
        self._acls.grant(frozenset(acl for spec in specs for acl in acls(spec.name)))


def _each(
    acls: Callable[[str, str], frozenset[Acl]], principals_of: PrincipalsOf
) -> frozenset[Acl]:
    return frozenset(
        acl
        for topic, principals in principals_of.items()
        for principal in principals
        for acl in acls(principal, topic)
    )
