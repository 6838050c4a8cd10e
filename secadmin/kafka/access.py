"""Who may reach a topic: letting in, and taking away so that nothing more arrives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager

from secadmin.kafka.acl import Acl
from secadmin.kafka.acls import Acls
from secadmin.kafka.fence import Fence
from secadmin.kafka.topics import is_fenced_topic

Lock = Callable[[str], AbstractContextManager[object]]
"""Gives the lock of a topic, held across all SecAdmins while the block runs."""

PrincipalsOf = Mapping[str, Collection[str]]
"""Principals, by the topic that they may reach or may not reach any more."""


class TopicAccess:
    """Changes who may reach a topic, one change a topic at a time."""

    def __init__(self, acls: Acls, fence: Fence, lock: Lock) -> None:
        self._acls = acls
        self._fence = fence
        self._lock = lock

    def allow(self, topic: str, acls: Collection[Acl], still: Callable[[], bool]) -> None:
        """Create these ACLs on the topic if, under the topic's lock, they are `still` wanted.

        A revocation that was decided meanwhile is thus either seen by `still`, or waits for the
        lock and deletes what was created. Raises Unavailable.
        """
        with self._lock(topic):
            if still():
                self._acls.grant(acls)

    def withdraw(self, topic: str, principals: Collection[str]) -> None:
        """As `withdraw_locked` of this topic, under its lock."""
        with self._lock(topic):
            self.withdraw_locked({topic: principals})

    def withdraw_locked(self, principals_of: PrincipalsOf) -> None:
        """Take topics, whose locks the caller holds, from principals: nothing more reaches them.

        Their ACLs on the topics are deleted at every broker; topics that subscribers read are then
        fenced, also when there was no ACL left (an earlier call may have ended in between).

        Raises:
            FenceNotProven: A fetch that was let in earlier may still wait. Repeat the call.
            Unavailable: Kafka cannot be reached. Repeat the call.
        """
        self._fence.put_up(
            [topic for topic in principals_of if is_fenced_topic(topic)],
            lambda: self._acls.revoke_topics(principals_of),
        )

    def restore_leftover_settings(self, topics: Collection[str]) -> frozenset[str]:
        """At start-up: take back the setting of fences that a crash cut off; gives their topics.

        Their withdrawals are not done: they have to be repeated. Raises Unavailable.
        """
        left = self._fence.shortened([topic for topic in topics if is_fenced_topic(topic)])
        for topic in sorted(left):
            # Under the lock, so that the fence of another SecAdmin is not cut short.
            with self._lock(topic):
                self._fence.restore([topic])
        return left
