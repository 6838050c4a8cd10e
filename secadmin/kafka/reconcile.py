"""Reconciliation: Kafka allows what the catalog says, whatever happened in between.

Taking away comes first. What allows something on a topic of the platform and is not wanted
goes, of whatever form it is. So does what lets an engine do anything else, whatever it is on. ACLs
of others, on others' topics, are none of our business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from secadmin.kafka.access import Granting, PrincipalsOf, TopicAccess
from secadmin.kafka.acl import (
    USER,
    Acl,
    EngineAccounts,
    ForeignAcl,
    GroupAcl,
    Operation,
    TopicAcl,
    TransactionAcl,
    group_prefix,
)
from secadmin.kafka.acls import Acls
from secadmin.kafka.principals import is_new_principal_name
from secadmin.kafka.topics import (
    NAMESPACES,
    Topics,
    is_fenced_topic,
    is_platform_topic,
    is_sent_topic,
)

OF_NOBODY = "-"
"""In place of a principal; no name that `secadmin.kafka.principals` gives out."""

_TOGETHER = 16
# The kind of access whose principals write in transactions.
_SENDER = "send"
_READING = frozenset({"READ", "ALL"})


WantedAcl = TopicAcl | GroupAcl
"""What the catalog lets in: topics, and the groups of every reader."""


class Taking(Protocol):
    """What reconciliation needs of the catalog to take something away."""

    def hold(self, topics: Collection[str]) -> AbstractContextManager[None]:
        """The topics' locks, all of them, while the block runs. Raises Unavailable."""

    def intend(self, unknown: Collection[Acl], fence: PrincipalsOf) -> None:
        """Keep what is taken away and the topics to fence behind it, before any ACL is deleted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to change in Kafka, and from whom the topics are taken that are to be fenced."""

    remove: frozenset[Acl]
    fence: Mapping[str, frozenset[str]]
    add: frozenset[Acl]


def compare(
    wanted: Set[WantedAcl], found: Set[Acl], topics: Collection[str], engines: EngineAccounts
) -> Difference:
    """Compare what the catalog wants with what Kafka has.

    What engines may do with a topic of the platform goes with the topic, and never before: a
    stream's topics are there before the stream is, and a closed class is written until the batch
    of the run that fed it has ended. While the catalog does not know the topic, nothing but its
    name tells what that is.

    Args:
        wanted: What the catalog lets in. The prefixed ACLs of whoever reads or sends a topic follow
            from it. A reader that has no topic for now keeps the ACL on its groups, if that is in
            here: its client goes on, and waits.
        found: All ACLs of the cluster.
        topics: The platform's topics that exist, which ACLs of other forms may reach.
        engines: The accounts of the engines.
    """
    whole = with_prefixed(wanted, engines)
    known = {acl.topic for acl in _on_topics(wanted) if engines.has(acl.principal)}
    unknown = (acl for acl in found - whole if not _may_be_engines(acl, known, engines))
    remove = frozenset(acl for acl in unknown if _is_ours(acl, topics, engines))
    fence: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for acl in remove:
        for topic in _read_topics(acl, topics):
            fence[topic] |= {_taken_from(acl, engines)}
    return Difference(remove=remove, fence=fence, add=frozenset(whole - found))


def with_prefixed(wanted: Set[WantedAcl], engines: EngineAccounts) -> frozenset[Acl]:
    """The wanted ACLs, for every reader the one on its groups, for senders that on transactions.

    Engines have neither.
    """
    found: set[Acl] = set(wanted)
    for acl in (acl for acl in _on_topics(wanted) if not engines.has(acl.principal)):
        if acl.operation is Operation.READ:
            found.add(GroupAcl(acl.principal, group_prefix(acl.principal)))
        elif is_sent_topic(acl.topic):
            found.add(TransactionAcl(acl.principal, group_prefix(acl.principal)))
    return frozenset(found)


class Reconciler:
    """Brings Kafka's ACLs in line with the catalog."""

    def __init__(
        self, acls: Acls, topics: Topics, access: TopicAccess, engines: EngineAccounts
    ) -> None:
        self._acls = acls
        self._topics = topics
        self._access = access
        self._engines = engines

    def reconcile(
        self, wanted: Callable[[], Set[WantedAcl]], taking: Taking, granting: Granting
    ) -> None:
        """Remove what the catalog does not want, then add what is missing.

        What was removed is not fenced yet: the caller does that, with what `taking` kept. Were this
        process to end before, nothing in Kafka would tell that a fence is lacking.

        Args:
            wanted: Reads the catalog anew at each call.
            taking: Locks topics and keeps what is taken away.
            granting: Keeps for what Kafka was asked.

        Raises:
            Unavailable: Something is left to do; nothing was added if something could not be
                taken away.
        """
        # Kafka first, then the catalog: a grant is committed before its ACL is created, so what is
        # found without being wanted was not granted a moment ago.
        found = self._acls.list_all()
        topics = self._topics.list_names()
        difference = compare(wanted(), found, topics, self._engines)
        for acls in _in_groups(difference.remove):
            self._take_away(acls, topics, wanted, taking)
        self._add(difference.add, wanted, granting)

    def _take_away(
        self,
        acls: Set[Acl],
        topics: Collection[str],
        wanted: Callable[[], Set[WantedAcl]],
        taking: Taking,
    ) -> None:
        """Take away those of the ACLs that are still there and not wanted, under topics' locks.

        Whoever lets in or takes away meanwhile comes before or after: what was granted anew stays,
        and what is kept to be fenced is not fenced before the ACL is gone.
        """
        names = {acl.topic for acl in acls if isinstance(acl, TopicAcl)}
        names.update(topic for acl in acls for topic in _read_topics(acl, topics))
        with taking.hold(names):
            left = acls & self._acls.list_all()
            difference = compare(wanted(), left, topics, self._engines)
            if difference.remove:
                taking.intend(difference.remove, difference.fence)
                self._acls.revoke(difference.remove)

    def _add(
        self, missing: Set[Acl], wanted: Callable[[], Set[WantedAcl]], granting: Granting
    ) -> None:
        by_topic: dict[str, set[TopicAcl]] = defaultdict(set)
        for acl in missing:
            if isinstance(acl, TopicAcl):
                by_topic[acl.topic].add(acl)
        # A sender's transactions come with its topic.
        lacking = {acl.principal for acl in missing if isinstance(acl, TransactionAcl)}
        for acl in _on_topics(wanted() if lacking else frozenset()):
            if acl.principal in lacking and is_sent_topic(acl.topic):
                by_topic[acl.topic].add(acl)
        for topic, acls in sorted(by_topic.items()):
            whole = with_prefixed(acls, self._engines)
            self._access.allow(topic, whole, partial(_holds, acls, wanted), granting)
        # Where the ACLs on topics are there, those on groups give no right to data.
        self._acls.grant([acl for acl in missing if isinstance(acl, GroupAcl)])


def _in_groups(acls: Set[Acl]) -> Iterator[Set[Acl]]:
    """What is taken away together: ACLs on sixteen topics, each of another form, those on groups.

    One of another form may reach every topic, so all that it reaches are locked for it alone.
    """
    by_topic: defaultdict[str, set[Acl]] = defaultdict(set)
    for acl in acls:
        if isinstance(acl, TopicAcl):
            by_topic[acl.topic].add(acl)
        elif isinstance(acl, ForeignAcl):
            yield {acl}
    names = sorted(by_topic)
    for start in range(0, len(names), _TOGETHER):
        yield set().union(*(by_topic[name] for name in names[start : start + _TOGETHER]))
    if prefixed := {acl for acl in acls if isinstance(acl, GroupAcl | TransactionAcl)}:
        yield prefixed


def _may_be_engines(acl: Acl, known: Set[str], engines: EngineAccounts) -> bool:
    """Whether an engine may have it on a topic that is not among the known ones."""
    if not isinstance(acl, TopicAcl) or acl.topic in known:
        return False
    return acl in engines.any_acls(acl.topic)


def _is_ours(acl: Acl, topics: Collection[str], engines: EngineAccounts) -> bool:
    """Whether the catalog decides on this ACL. A denial lets nobody in: it stays."""
    if isinstance(acl, ForeignAcl) and acl.permission != "ALLOW":
        return False
    if engines.has(acl.principal.removeprefix(USER)):
        return True
    if isinstance(acl, TopicAcl):
        return is_platform_topic(acl.topic)
    if isinstance(acl, GroupAcl):
        return acl.prefix == group_prefix(acl.principal)
    if isinstance(acl, TransactionAcl):
        return is_new_principal_name(acl.principal, {_SENDER})
    if acl.resource != "TOPIC":
        return False
    return any(_matches(acl, topic) for topic in topics) or _may_match(acl)


def _taken_from(acl: Acl, engines: EngineAccounts) -> str:
    """Whom all on the topic is taken from; nobody, where that could take what is wanted, too."""
    is_alone = isinstance(acl, TopicAcl) and not engines.has(acl.principal)
    return acl.principal if is_alone else OF_NOBODY


def _read_topics(acl: Acl, topics: Collection[str]) -> list[str]:
    """The existing topics that the ACL lets somebody read, and that subscribers read."""
    if isinstance(acl, GroupAcl | TransactionAcl):
        return []
    if isinstance(acl, TopicAcl):
        reads = acl.operation is Operation.READ and acl.topic in topics
        return [acl.topic] if reads and is_fenced_topic(acl.topic) else []
    if acl.resource != "TOPIC" or acl.operation not in _READING:
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


def _on_topics(acls: Set[WantedAcl]) -> Iterator[TopicAcl]:
    return (acl for acl in acls if isinstance(acl, TopicAcl))


def _holds(acls: Set[TopicAcl], wanted: Callable[[], Set[WantedAcl]]) -> bool:
    return acls <= wanted()
