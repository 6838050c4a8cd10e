"""All that the control service does with Kafka, put together from the cluster's settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Set
from types import TracebackType

from catalog.settings import KafkaSettings
from catalog.topics import in_topic, lab_topic, quarantine_topic
from secadmin.kafka.access import Lock, TopicAccess
from secadmin.kafka.acl import TopicAcl, platform_acls, read_acls, write_acls
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import AdminClients, check_connection
from secadmin.kafka.fence import Fence
from secadmin.kafka.fence_writer import FenceWriter
from secadmin.kafka.principals import Principals
from secadmin.kafka.reconcile import Difference, Reconciler
from secadmin.kafka.topics import Topics, TopicSpec
from secadmin.kafka.wire.connections import BrokerConnections


class KafkaControl:
    """Topics, principals and rights of one cluster; for any number of threads.

    Who calls `withdraw`, `allow_read` or `allow_write` holds the topic's lock; `lock` is taken
    where several topics are gone through here. All methods raise Unavailable within seconds when
    Kafka cannot be reached, and can then be repeated.
    """

    def __init__(
        self, settings: KafkaSettings, lock: Lock, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` gives seconds since 1970. Nothing is asked of the cluster yet."""
        self._settings = settings
        self._admins = AdminClients.open(settings)
        self._connections = BrokerConnections(settings)
        self._writer = FenceWriter(settings)
        self.topics = Topics(self._admins, settings)
        self.principals = Principals(self._admins)
        self.acls = Acls(self._admins, self._connections)
        self.fence = Fence(self._admins, self.topics, self._writer, self._connections, clock)
        self.access = TopicAccess(self.acls, self.fence, lock)
        self._reconciler = Reconciler(self.acls, self.topics, self.access)

    def prepare(self) -> frozenset[str]:
        """At start-up, before anything else: the platform's account, and what a crash left.

        Returns:
            Topics whose fence was cut off; their withdrawals are to be repeated.
        """
        check_connection(self._admins)
        self.principals.ensure_secfilter(self._settings)
        return self.access.restore_leftover_settings(self.topics.list_names())

    def create_stream_topics(self, stream: str, partitions: int) -> None:
        """Create in., lab. and quarantine.<stream>; the data plane may use them as it needs."""
        names = (in_topic(stream), lab_topic(stream), quarantine_topic(stream))
        self._create([TopicSpec(name, partitions) for name in names])

    def create_output_topics(self, output: str) -> None:
        """Create lab.<output>, for queries over it."""
        self._create([TopicSpec(lab_topic(output))])

    def open_class(self, topic: str, retention_ms: int) -> None:
        """Create a delivery topic and let the data plane write it."""
        self._create([TopicSpec(topic, retention_ms=retention_ms)])

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete topics with the ACLs on them, and wait until they are gone."""
        self.acls.delete_on_topics(topics)
        self.topics.delete(topics)

    def end_offsets(self, topics: Collection[str]) -> Mapping[str, Mapping[str, int]]:
        """The offsets that the next records get: {topic: {partition: offset}}."""
        ends = self.topics.end_offsets(topics)
        return {
            topic: {str(partition): offset for partition, offset in offsets.items()}
            for topic, offsets in ends.items()
        }

    def create_principal(self, name: str) -> str:
        """Create the SCRAM user and return its new random password."""
        return self.principals.create(name).password

    def delete_principal(self, name: str) -> None:
        """Delete the SCRAM user and its ACLs; it must hold no topic that subscribers read."""
        self.acls.delete_of_principal(name)
        self.principals.delete(name)

    def allow_read(self, principal: str, topic: str) -> None:
        """Let the principal read the topic, with groups of its own prefix."""
        self.acls.grant(read_acls(principal, topic))

    def allow_write(self, principal: str, topic: str) -> None:
        """Let the principal write the topic."""
        self.acls.grant(write_acls(principal, topic))

    def withdraw(self, topic: str, principals: Collection[str]) -> None:
        """Take the topic from the principals; for readers, fenced when the call returns.

        Raises:
            FenceNotProven: Nothing may be written to the topic until a repetition has succeeded.
        """
        self.access.withdraw_held(topic, principals)

    def reconcile(self, wanted: Callable[[], Set[TopicAcl]]) -> Difference:
        """Bring Kafka's ACLs in line with the catalog; see `Reconciler`.

        `wanted` gives what users are let in to; what the data plane needs is added here.
        """
        account = self._settings.secfilter.username

        def whole() -> Set[TopicAcl]:
            needed = [platform_acls(account, topic) for topic in self.topics.list_names()]
            own = {acl for acls in needed for acl in acls if isinstance(acl, TopicAcl)}
            return wanted() | own

        return self._reconciler.reconcile(whole)

    def close(self) -> None:
        """Close what is open; the object cannot be used afterwards."""
        self._writer.close()
        self._connections.close()

    def __enter__(self) -> KafkaControl:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _create(self, specs: Collection[TopicSpec]) -> None:
        self.topics.create(specs)
        account = self._settings.secfilter.username
        needed = [platform_acls(account, spec.name) for spec in specs]
        self.acls.grant([acl for acls in needed for acl in acls])
