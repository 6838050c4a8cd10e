"""Access to topics: giving it, and withdrawing it so that nothing more arrives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Protocol

from secadmin.kafka.acl import Acl
from secadmin.kafka.acls import Acls
from secadmin.kafka.fence import Fence
from secadmin.kafka.replicas import Replicas
from secadmin.kafka.topics import is_fenced_topic
from secadmin.kafka.wire.connection import BrokerAddress

Lock = Callable[[str], AbstractContextManager[object]]
"""Gives the lock of a topic. It holds for all SecAdmin processes while the block runs."""

PrincipalsOf = Mapping[str, Collection[str]]
"""For each topic, the principals that get access to it or lose it."""


class Granting(Protocol):
    """What gives access needs of the catalog."""

    def carry_out(
        self, principals_of: PrincipalsOf, create: Callable[[PrincipalsOf], bool]
    ) -> None:
        """Create ACLs, and know ever after that Kafka was asked for them.

        `create` gets those that are still wanted. It creates their ACLs, and says whether Kafka has
        no other copy of the request. What it raises is raised. The caller holds the topics' locks.
        """


class TopicAccess:
    """Changes the access to topics. A topic has one change at a time."""

    def __init__(self, acls: Acls, fence: Fence, replicas: Replicas, lock: Lock) -> None:
        self._acls = acls
        self._fence = fence
        self._replicas = replicas
        self._lock = lock

    def allow(
        self,
        topic: str,
        acls: Collection[Acl],
        still: Callable[[], bool],
        granting: Granting,
    ) -> None:
        """Create these ACLs on the topic if `still` says, under the lock, that they are wanted.

        A revocation may be decided in the meantime. Then either `still` sees it, or the revocation
        waits for the lock and deletes the new ACLs. Raises Unavailable.
        """

        def create(wanted: PrincipalsOf) -> bool:
            return self._acls.grant([acl for acl in acls if acl.principal in wanted[topic]])

        with self._lock(topic):
            if still():
                granting.carry_out({topic: sorted({acl.principal for acl in acls})}, create)

    def withdraw(self, topic: str, principals: Collection[str]) -> None:
        """Take the topic's lock, and call `withdraw_locked` for this topic."""
        with self._lock(topic):
            self.withdraw_locked({topic: principals})

    def withdraw_locked(
        self, principals_of: PrincipalsOf, banned: PrincipalsOf = MappingProxyType({})
    ) -> None:
        """Withdraw topics from principals, so that nothing more reaches them.

        The caller holds the topics' locks. The principals' ACLs on the topics are deleted. A broker
        that does not show that they are gone there loses its replicas of the topics. Then the
        topics that subscribers read are fenced. They are fenced also if no ACL was left, because an
        earlier call may have ended between the two steps. Those of them that are `banned` from a
        topic are denied it for good.

        Raises:
            FenceNotProven: A fetch that was allowed earlier may still wait. Repeat the call.
            Unavailable: Kafka cannot be reached. Repeat the call.
        """

        def take_away() -> Mapping[int, BrokerAddress]:
            proven = self._acls.revoke_topics(principals_of, banned)
            self._replicas.leave_out(principals_of, proven)
            return proven

        self._fence.put_up([topic for topic in principals_of if is_fenced_topic(topic)], take_away)

    def restore_leftover_settings(self, topics: Collection[str]) -> frozenset[str]:
        """At start-up, reset the setting that a fence left when its process crashed.

        Gives the topics of these fences. Their withdrawals are not complete, so the caller must
        repeat them. Raises Unavailable.
        """
        left = self._fence.shortened([topic for topic in topics if is_fenced_topic(topic)])
        for topic in sorted(left):
            # The lock is needed: another SecAdmin may be fencing the topic just now.
            with self._lock(topic):
                self._fence.restore([topic])
        return left
