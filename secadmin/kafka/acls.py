"""The cluster's ACLs: granting, deleting (until no broker lists them) and listing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from confluent_kafka.admin import (
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from catalog.errors import Unavailable
from secadmin.kafka.acl import (
    USER,
    Acl,
    TopicAcl,
    TransactionAcl,
    bans,
    from_binding,
    group_prefix,
    to_binding,
)
from secadmin.kafka.acl_filter import AclFilter, ListedAcl
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.connect import (
    REQUEST_TIMEOUT_S,
    AdminClients,
    failure_of_code,
    finished,
)
from secadmin.kafka.grouped import Grouped
from secadmin.kafka.milestones import Milestones
from secadmin.kafka.topics import is_sent_topic
from secadmin.kafka.wire.acl_changes import create_acls, delete_acls
from secadmin.kafka.wire.broker_acls import broker_acls
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection, network_errors
from secadmin.kafka.wire.connections import BrokerConnections, Unanswered

APPLIED_TIMEOUT_S = 5.0
"""Longest wait for the brokers to apply a change that the cluster has committed, in seconds."""

_POLL_S = 0.002
# Kafka refuses a request that changes more than 10,000 ACLs. A filter here matches two at most,
# but for those of a whole topic or principal. For each filter Kafka looks at all ACLs of the
# cluster: 2,000 filters among 20,000 ACLs may take seconds, and then nobody waits for the answer.
_AT_ONCE = 500


class Acls:
    """The cluster's ACLs, through connections to its brokers."""

    def __init__(
        self, admins: AdminClients, connections: BrokerConnections, replication: int = 1
    ) -> None:
        """`replication` is the number of replicas that topics should have."""
        self._admins = admins
        self._connections = connections
        self._replication = replication
        self._creations = Grouped(self._send_creations)
        self._deletions = Grouped(self._send_deletions)
        self._milestones = Milestones()

    def grant(self, acls: Collection[Acl]) -> bool:
        """Create the ACLs that are missing; returns once every broker that answers has them.

        Returns:
            Whether that was all. If not, a broker that hangs may create them once more.

        Raises:
            Unanswered: Nobody knows whether they are created. This may even happen later.
            Unavailable: Kafka cannot be reached, or a broker does not apply them in time.
        """
        if not acls:
            return True
        filters = [_exactly(acl) for acl in sorted(acls, key=_is_on_topic)]
        is_settled = all(self._creations.run(filters))
        # A broker applies changes in their order: what is on topics came behind all else.
        last = [_exactly(acl) for acl in acls if _is_on_topic(acl)] or filters
        try:
            answers = self._ask(live_brokers(self._connections), _Wanted(last, listed=True))
            for failure in answers.behind.values():
                raise failure
        except Unavailable as failure:
            if is_settled:
                raise
            raise Unanswered(str(failure)) from None
        return is_settled

    def revoke(self, acls: Collection[Acl]) -> None:
        """Delete exactly these ACLs, where they exist; returns once no broker lists one.

        A fetch that a broker has parked outlives this: see `secadmin.kafka.fence`.

        Raises:
            Unavailable: Kafka cannot be reached, or a broker still lists one.
        """
        self._delete([_exactly(acl) for acl in acls])

    def revoke_topics(
        self,
        principals_of: Mapping[str, Collection[str]],
        banned: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> dict[int, BrokerAddress]:
        """Delete all that lets principals reach these topics by name.

        Those of them that are `banned` from a topic are also denied it for good: their ACLs may
        come back (`Unanswered`).

        Of a sender its transactions, too: what is open can be neither committed nor added to, and
        Kafka aborts it after its time-out.

        Returns:
            The brokers that have applied this, and list none of it any more. Of the others nothing
            is known: see `secadmin.kafka.replicas`.

        Raises:
            Unavailable: Kafka cannot be reached, or no broker shows that the ACLs are gone.
        """
        pairs = [(topic, name) for topic, names in principals_of.items() for name in names]
        senders = sorted({name for topic, name in pairs if is_sent_topic(topic)})
        filters = [
            *(_on_topic(topic, f"User:{name}") for topic, name in pairs),
            *map(_transactions_of, senders),
        ]
        denials = [
            _exactly(acl)
            for topic, names in banned.items()
            for name in names
            for acl in bans(name, topic)
        ]
        if denials:
            self._creations.run(denials)
        passed = self._milestones.take_passed()
        try:
            self._deletions.run([*filters, *passed])
        except BaseException:
            self._milestones.add_passed(*passed)
            raise
        gone, brokers = _Wanted(filters, listed=False), live_brokers(self._connections)
        if self._replication == len(brokers) == 1:
            # A change was answered by the one broker, which cannot be behind itself.
            return self._ask(brokers, _Wanted(denials, listed=True), gone).proven
        return self._ask_at_a_milestone(brokers, gone)

    def delete_on_topics(self, topics: Collection[str]) -> None:
        """Delete the ACLs of everyone on these topics, by name; as `revoke`."""
        self._delete([_on_topic(topic, None) for topic in topics])

    def delete_of_principal(self, principal: str) -> None:
        """Delete all that the principal is allowed, on whatever resource; as `revoke`.

        What it is denied stays: its connections may be open.
        """
        self._delete([_allowed_to(principal)])

    def list_all(self) -> frozenset[Acl]:
        """Every ACL of the cluster, of whatever form. Raises Unavailable."""
        everything = AclFilter().for_client()
        future = self._admins.reads.describe_acls(everything, request_timeout=REQUEST_TIMEOUT_S)
        return frozenset(from_binding(binding) for binding in finished(future, "list the ACLs"))

    def _delete(self, filters: list[AclFilter]) -> None:
        if not filters:
            return
        self._deletions.run(filters)
        answers = self._ask(live_brokers(self._connections), _Wanted(filters, listed=False))
        for failure in (*answers.behind.values(), *answers.silent.values()):
            raise failure

    def _ask_at_a_milestone(
        self, brokers: Mapping[int, BrokerAddress], gone: _Wanted
    ) -> dict[int, BrokerAddress]:
        """The brokers that have applied what was changed before, and show that this is gone."""
        milestone = AclFilter.exactly(self._milestones.new())
        try:
            self._creations.run([milestone])
            return self._ask(brokers, _Wanted([milestone], listed=True), gone).proven
        finally:
            self._milestones.add_passed(milestone)

    def _send_creations(self, acls: Sequence[AclFilter]) -> list[bool | Exception]:
        return self._sent("create the ACLs", create_acls, acls)

    def _send_deletions(self, filters: Sequence[AclFilter]) -> list[bool | Exception]:
        return self._sent("delete the ACLs", delete_acls, filters)

    def _sent(
        self,
        purpose: str,
        send: Callable[[BrokerConnection, Sequence[AclFilter]], list[int]],
        filters: Sequence[AclFilter],
    ) -> list[bool | Exception]:
        """For each its failure, or whether Kafka has no other copy of the request."""
        once = list(dict.fromkeys(filters))
        results: dict[AclFilter, bool | Exception] = {}
        for start in range(0, len(once), _AT_ONCE):
            some = once[start : start + _AT_ONCE]
            try:
                answer = self._connections.answer(purpose, partial(_send, send, some))
            except Unavailable as failure:
                if all(result is True for result in results.values()):
                    raise
                raise Unanswered(str(failure)) from None
            for each, code in zip(some, answer.value, strict=True):
                refusal = failure_of_code(code, purpose)
                # A broker that waited in vain for the controllers gives a code, too.
                results[each] = Unanswered(str(refusal)) if refusal else answer.settled
        return [results[each] for each in filters]

    def _ask(self, brokers: Mapping[int, BrokerAddress], *wanted: _Wanted) -> _Answers:
        """Ask each broker itself until it shows all that is wanted, one after the other.

        The cluster commits a change before its brokers apply it. Raises Unavailable if no broker
        shows it.
        """
        answers = _Answers()
        for broker, address in brokers.items():
            try:
                with (
                    network_errors(f"ask broker {broker} for its ACLs"),
                    self._connections.lent(address) as connection,
                ):
                    is_applied = self._is_applied(connection, wanted)
            except Unavailable as silence:
                answers.silent[broker] = silence
                continue
            if is_applied:
                answers.proven[broker] = address
            else:
                behind = Unavailable(f"broker {broker} does not apply changes of ACLs")
                answers.behind[broker] = behind
        if not answers.proven:
            for failure in (*answers.behind.values(), *answers.silent.values()):
                raise failure
            raise Unavailable("Kafka has no broker that is alive; it is tried again")
        return answers

    @staticmethod
    def _is_applied(connection: BrokerConnection, wanted: Iterable[_Wanted]) -> bool:
        deadline = time.monotonic() + APPLIED_TIMEOUT_S
        for each in wanted:
            for question, group in _questions(each.filters).items():
                while not _is_so(group, broker_acls(connection, question), each.listed):
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(_POLL_S)
        return True


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a broker should show: that it lists what each filter matches, or nothing of it."""

    filters: Sequence[AclFilter]
    listed: bool


@dataclass(frozen=True, slots=True)
class _Answers:
    """The brokers that have applied a change of ACLs, those that have not, and the silent ones."""

    proven: dict[int, BrokerAddress] = field(default_factory=dict)
    behind: dict[int, Unavailable] = field(default_factory=dict)
    silent: dict[int, Unavailable] = field(default_factory=dict)


def _send(
    send: Callable[[BrokerConnection, Sequence[AclFilter]], list[int]],
    filters: Sequence[AclFilter],
    connection: BrokerConnection,
) -> list[int]:
    return send(connection, filters)


def _exactly(acl: Acl) -> AclFilter:
    return AclFilter.exactly(to_binding(acl))


def _is_on_topic(acl: Acl) -> bool:
    return isinstance(acl, TopicAcl)


def _questions(filters: Iterable[AclFilter]) -> dict[AclFilter, list[AclFilter]]:
    """What to ask a broker for: once for all that is looked for on one resource."""
    on: defaultdict[AclFilter, list[AclFilter]] = defaultdict(list)
    for matching in filters:
        on[matching.place()].append(matching)
    return {place if len(group) > 1 else group[0]: group for place, group in on.items()}


def _is_so(filters: Iterable[AclFilter], acls: Iterable[ListedAcl], listed: bool) -> bool:
    """Whether each filter, or none, matches any of the ACLs of its resource."""
    of: defaultdict[str | None, list[ListedAcl]] = defaultdict(list)
    for acl in acls:
        of[acl.principal].append(acl)
        of[None].append(acl)
    return all(any(map(f.accepts, of.get(f.principal, ()))) is listed for f in filters)


def _allowed_to(principal: str) -> AclFilter:
    return AclFilter(principal=USER + principal, permission=AclPermissionType.ALLOW)


def _transactions_of(principal: str) -> AclFilter:
    return _exactly(TransactionAcl(principal, group_prefix(principal)))


def _on_topic(topic: str, principal: str | None) -> AclFilter:
    # Denials stay: bans, and an operator's emergency brake.
    return AclFilter(
        resource=ResourceType.TOPIC,
        name=topic,
        pattern=ResourcePatternType.LITERAL,
        principal=principal,
        permission=AclPermissionType.ALLOW,
    )
