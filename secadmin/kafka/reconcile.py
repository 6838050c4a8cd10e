"""Reconciliation: Kafka allows what the catalog says, whatever happened in between.

Taking away comes first, fenced. What allows something on a topic of the platform and is not wanted
goes, of whatever form it is; ACLs of others, on others' topics, are none of our business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from functools import partial

from secadmin.kafka.access import TopicAccess
from secadmin.kafka.acl import Acl, ForeignAcl, GroupAcl, Operation, TopicAcl, group_prefix
from secadmin.kafka.acls import Acls
from secadmin.kafka.topics import NAMESPACES, Topics, is_fenced_topic, is_platform_topic

_NAMESPACES = ("in.", "lab.", "quarantine.", "out.")
_READING = frozenset({"READ", "ALL"})


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to change in Kafka, and the topics to fence once `remove` is gone."""

    remove: frozenset[Acl]
    fence: frozenset[str]
    add: frozenset[Acl]


def compare(wanted: Set[TopicAcl], found: Set[Acl], topics: Collection[str]) -> Difference:
    """Compare what the catalog wants with what Kafka has.

    Args:
        wanted: What the catalog lets in; readers' group ACLs follow from it.
        found: All ACLs of the cluster.
        topics: The platform's topics that exist, which ACLs of other forms may reach.
    """
    whole = with_groups(wanted)
    remove = frozenset(acl for acl in found - whole if _is_ours(acl, topics))
    fence = frozenset(topic for acl in remove for topic in _read_topics(acl, topics))
    return Difference(remove=remove, fence=fence, add=frozenset(whole - found))


def with_groups(wanted: Set[TopicAcl]) -> frozenset[Acl]:
    """The wanted ACLs, and for every reader the one on its consumer groups."""
    readers = {acl.principal for acl in wanted if acl.operation is Operation.READ}
    return frozenset(wanted) | {GroupAcl(reader, group_prefix(reader)) for reader in readers}


class Reconciler:
    """Brings Kafka's ACLs in line with the catalog."""

    def __init__(self, acls: Acls, topics: Topics, access: TopicAccess) -> None:
        self._acls = acls
        self._topics = topics
        self._access = access

    def reconcile(
        self, wanted: Callable[[], Set[TopicAcl]], intend: Callable[[Collection[str]], None]
    ) -> Difference:
        """Remove and fence what the catalog does not want, then add what is missing.

        Args:
            wanted: Reads the catalog anew at each call.
            intend: Keeps the topics that will be fenced, before any ACL is deleted: were this
                process to end in between, nothing in Kafka would tell that a fence is lacking.

        Returns:
            What was found to differ.

        Raises:
            FenceNotProven, Unavailable: Something is left to do; nothing was added if something
                could not be taken away.
        """
        # Kafka first, then the catalog: a grant is committed before its ACL is created, so what is
        # found without being wanted was not granted a moment ago.
        found = self._acls.list_all()
        topics = self._topics.list_names()
        difference = compare(wanted(), found, topics)
        if difference.fence:
            intend(difference.fence)
        self._acls.revoke(difference.remove)
        self._access.fence_all(difference.fence)
        self._add(difference.add, wanted)
        return difference

    def _add(self, missing: Set[Acl], wanted: Callable[[], Set[TopicAcl]]) -> None:
        by_topic: dict[str, set[TopicAcl]] = defaultdict(set)
        for acl in missing:
            if isinstance(acl, TopicAcl):
                by_topic[acl.topic].add(acl)
        for topic, acls in sorted(by_topic.items()):
            self._access.allow(topic, with_groups(acls), partial(_holds, acls, wanted))
        # Those of readers whose topic ACLs are there give no right to data.
        self._acls.grant([acl for acl in missing if isinstance(acl, GroupAcl)])


def _is_ours(acl: Acl, topics: Collection[str]) -> bool:
    """Whether the catalog decides on this ACL. A denial lets nobody in: it stays."""
    if isinstance(acl, TopicAcl):
        return is_platform_topic(acl.topic)
    if isinstance(acl, GroupAcl):
        return acl.prefix == group_prefix(acl.principal)
    if acl.permission != "ALLOW" or acl.resource != "TOPIC":
        return False
    return any(_matches(acl, topic) for topic in topics) or _may_match(acl)


def _read_topics(acl: Acl, topics: Collection[str]) -> list[str]:
    """The existing topics that the ACL lets somebody read, and that subscribers read."""
    if isinstance(acl, GroupAcl):
        return []
    if isinstance(acl, TopicAcl):
        reads = acl.operation is Operation.READ and acl.topic in topics
        return [acl.topic] if reads and is_fenced_topic(acl.topic) else []
    if acl.operation not in _READING:
        return []
    return [topic for topic in topics if is_fenced_topic(topic) and _matches(acl, topic)]


def _matches(acl: ForeignAcl, topic: str) -> bool:
    if acl.name == "*" and acl.pattern == "LITERAL":
        return True
    return topic.startswith(acl.name) if acl.pattern == "PREFIXED" else topic == acl.name


def _may_match(acl: ForeignAcl) -> bool:
    """Whether a topic of the platform that is created later could match."""
    if acl.pattern == "PREFIXED":
        name = acl.name
        return any(name.startswith(space) or space.startswith(name) for space in NAMESPACES)
    return acl.name == "*" or is_platform_topic(acl.name)


def _holds(acls: Set[TopicAcl], wanted: Callable[[], Set[TopicAcl]]) -> bool:
    return acls <= wanted()
