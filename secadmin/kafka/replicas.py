"""Which brokers have the replicas of the platform's topics.

A broker may not be able to show that an ACL is gone there: it is down, it hangs, or it is cut off
from the controllers. But its clients may reach it. Then it goes on to serve them by its old ACLs,
and as a follower it may still get each new record. So it loses its replicas of the topics that
are taken from somebody (`leave_out`). The leaders send it nothing from then on, and what it has is
older than the revocation.

This holds however long the broker is cut off. All changes of the cluster are one log, which each
broker applies in order: the deletion of the ACL comes before the loss of the replica, and that
before the broker gets a replica again (`replenish`). So a broker that gets new records has applied
the deletion.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Set

from catalog.errors import Unavailable
from secadmin.kafka.topics import is_platform_topic, is_sent_topic
from secadmin.kafka.wire.cluster_view import ClusterView, PartitionView, cluster_view
from secadmin.kafka.wire.connection import BrokerAddress, network_errors
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.kafka.wire.leader_epochs import leads
from secadmin.kafka.wire.reassignment import reassign

log = logging.getLogger(__name__)
LEFT_TIMEOUT_S = 5.0
"""Longest wait until the leaders send nothing more to a broker that lost its replicas."""
REPLENISHED_AT_ONCE = 64
"""How many partitions get a replica in one go: each copies the partition's log."""
_POLL_S = 0.02

Place = tuple[str, int]
"""A partition: its topic and its number."""
Brokers = Mapping[int, BrokerAddress]


def without_unproven(
    partitions: Mapping[Place, PartitionView], proven: Collection[int], least: int
) -> dict[Place, list[int]]:
    """The replicas that are left, for each partition with a replica on a broker not in `proven`.

    Raises Unavailable if a partition would have fewer than `least` of them: it could take no record
    any more.
    """
    fewer = {}
    for (topic, number), partition in partitions.items():
        left = [broker for broker in partition.replicas if broker in proven]
        if len(left) == len(partition.replicas):
            continue
        if len(left) < least:
            silent = sorted(set(partition.replicas) - set(left))
            raise Unavailable(
                f"Kafka's brokers {', '.join(map(str, silent))} do not show that the rights on "
                f"{topic} are gone there, and too few brokers are left without them: "
                "bring them back; it is tried again"
            )
        fewer[topic, number] = left
    return fewer


def check_senders(topics: Collection[str], alive: Set[int], proven: Set[int]) -> None:
    """Raise Unavailable if a sender may still end its transactions at a broker.

    These are at another broker than its topic. One that is alive may lead them, one that counts as
    dead leads nothing.
    """
    if (silent := sorted(alive - proven)) and any(map(is_sent_topic, topics)):
        raise Unavailable(
            f"Kafka's brokers {', '.join(map(str, silent))} do not show that a sender's rights are "
            "gone there; it is tried again, and once they count as dead it goes without them"
        )


def with_new_ones(
    partitions: Mapping[Place, PartitionView], able: Set[int], replication: int
) -> dict[Place, list[int]]:
    """The replicas of some partitions that have too few, with new ones on `able` brokers.

    A new one goes to the broker that has the fewest.
    """
    held = Counter(broker for part in partitions.values() for broker in part.replicas)
    more: dict[Place, list[int]] = {}
    for place, partition in sorted(partitions.items()):
        lacking = replication - len(partition.replicas)
        others = sorted(able - set(partition.replicas), key=lambda broker: held[broker])
        if lacking <= 0 or not others or partition.leader is None:
            continue
        new = others[:lacking]
        held.update(new)
        more[place] = [*partition.replicas, *new]
        if len(more) == REPLENISHED_AT_ONCE:
            break
    return more


class Replicas:
    """Asks brokers for the replicas of topics, and changes them. Threads may share it."""

    def __init__(self, connections: BrokerConnections, replication: int) -> None:
        """`replication` is the number of replicas that each partition should have."""
        self._connections = connections
        self._replication = replication
        # The topics' `min.insync.replicas`.
        self._least = max(1, replication - 1)

    def view(self, topics: Collection[str] | None, brokers: Brokers) -> ClusterView:
        """What the first of these brokers that answers knows of the topics, or of all topics.

        Raises:
            Unavailable: None of them answers.
        """
        failure = Unavailable(
            "cannot look up topics: no broker of Kafka answers; it is tried again"
        )
        for broker, address in sorted(brokers.items()):
            try:
                with (
                    network_errors(f"ask broker {broker} for topics"),
                    self._connections.lent(address) as connection,
                ):
                    return cluster_view(connection, topics)
            except Unavailable as error:
                failure = error
        raise failure

    def leave_out(self, topics: Collection[str], proven: Brokers) -> None:
        """Take the replicas of these topics from all brokers that are not in `proven`.

        `proven` are the brokers that have shown that the ACLs are gone. Returns when the leaders,
        which are among them, send nothing to the others any more.

        Raises:
            Unavailable: Too few replicas would be left, or Kafka does not do it in time. Or a
                sender is concerned, and a broker that is alive is not in `proven`: it may still end
                the sender's transactions.
        """
        view = self.view(topics, proven)
        partitions = view.partitions
        check_senders(topics, view.brokers.keys(), proven.keys())
        fewer = without_unproven(partitions, proven, self._least)
        if not fewer:
            return
        for topic in sorted({topic for topic, _ in fewer}):
            gone = {b for (t, _), p in partitions.items() if t == topic for b in p.replicas}
            log.warning(
                "brokers %s do not show that rights on %s are gone there: they lose its replicas "
                "until they are back",
                sorted(gone.difference(proven)),
                topic,
            )
        self._reassign(fewer, proven)
        deadline = time.monotonic() + LEFT_TIMEOUT_S
        while not self._are_left(fewer.keys(), proven):
            if time.monotonic() > deadline:
                raise Unavailable("Kafka does not take replicas from a broker: it is tried again")
            time.sleep(_POLL_S)

    def replenish(self, alive: Brokers) -> int:
        """Give the platform's partitions that have too few replicas new ones, some at a time.

        Gives the number of these partitions. Raises Unavailable.
        """
        view = self.view(None, alive)
        ours = {p: part for p, part in view.partitions.items() if is_platform_topic(p[0])}
        if all(len(part.replicas) >= self._replication for part in ours.values()):
            return 0
        able = {broker for broker in alive if self._answers(broker, alive)}
        more = with_new_ones(ours, able, self._replication)
        if more:
            self._reassign(more, {broker: alive[broker] for broker in able})
        return len(more)

    def _answers(self, broker: int, alive: Brokers) -> bool:
        try:
            self.view((), {broker: alive[broker]})
        except Unavailable:
            return False
        return True

    def _reassign(self, replicas: Mapping[Place, list[int]], brokers: Brokers) -> None:
        # Whichever it is, it hands the request on to the active controller.
        address = brokers[min(brokers)]
        with (
            network_errors("move replicas of topics"),
            self._connections.lent(address) as connection,
        ):
            reassign(connection, replicas)

    def _are_left(self, places: Collection[Place], proven: Brokers) -> bool:
        """Whether none of the partitions has another broker, and each one's leader acts so."""
        partitions = self.view({topic for topic, _ in places}, proven).partitions
        epochs: defaultdict[int, dict[Place, int]] = defaultdict(dict)
        for place in places:
            partition = partitions.get(place)
            if partition is None:
                # The topic was deleted.
                continue
            leader = partition.leader
            if leader is None or leader not in proven or set(partition.replicas) - proven.keys():
                return False
            epochs[leader][place] = partition.epoch
        return all(self._leads(proven[leader], of) for leader, of in epochs.items())

    def _leads(self, address: BrokerAddress, epochs: Mapping[Place, int]) -> bool:
        with (
            network_errors("ask the leaders of topics"),
            self._connections.lent(address) as connection,
        ):
            return leads(connection, epochs)
