"""The fence: once it stands, no fetch that was let in earlier gets anything written later.

Kafka checks a fetch when it comes in. One that is parked at the broker is answered later without
another check, so it outlives the deletion of its ACL. A parked fetch whose offset lies in an older
segment than the log's end is answered at once, with what lies before the roll; the client's next
fetch is refused. So the fence rolls the log, and proves it:

1. The ACLs are deleted.
2. A first fence record is written. It got its offset after the ACL was gone, so no fetch that was
   let in before asks for a later one. Meanwhile `segment.ms` is set to 100: a record that is newer
   than the segment's first by more than that begins another. (With 1 ms nearly every tuple would,
   too.) Were it set before, the first record would roll the log for nothing.
3. A fetch of our own for exactly that record is parked at each live replica. It is the hardest of
   all fetches to release, and it stands behind all others that wait.
4. Further fence records are written, at least one, until our own fetches have come back: then the
   log's end lies in a newer segment than the first fence record, at each replica, and so than all
   that an earlier fetch can have asked for.
5. The setting is taken back.

An empty segment does not roll, and followers learn of the end of the log one fetch late: that is
why there are two records at least. The further ones are stamped ahead of the clock and of the
newest record, because rolling goes by the time of records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from confluent_kafka import TopicPartition, TopicPartitionInfo
from confluent_kafka.admin import OffsetSpec

from catalog.errors import Unavailable
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.connect import REQUEST_TIMEOUT_S, AdminClients, all_finished
from secadmin.kafka.fence_writer import FenceWriter, Partition
from secadmin.kafka.segment_setting import ROLL_MS, SegmentSetting
from secadmin.kafka.topics import Topics
from secadmin.kafka.wire.connection import BrokerAddress
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.kafka.wire.parked_fetch import FetchPlace, ParkedFetch, ping

# Of a further fence record before what is newest: enough to begin a segment.
_AHEAD_MS = ROLL_MS + 10


class FenceNotProven(Unavailable):
    """A fetch that was let in earlier may still be waiting; nothing may be written there."""

    title = "Fence not proven"

    def __init__(self, topics: Collection[str], reason: str) -> None:
        super().__init__(
            f"the fence of {', '.join(sorted(topics))} is not proven ({reason}): "
            "nothing may be written there until the revocation has been repeated"
        )


@dataclass(frozen=True, slots=True)
class FenceLimits:
    """How long to try, in seconds: in all, for each further fence record, between attempts."""

    total_s: float = 10.0
    record_s: float = 0.05
    pause_s: float = 0.02


class Fence:
    """Puts up fences, of several topics in one go; threads may fence different topics.

    Two callers must not fence one topic at the same time: the first to finish would take the
    setting away from the other. Who calls holds the topic's lock.
    """

    def __init__(
        self,
        admins: AdminClients,
        topics: Topics,
        writer: FenceWriter,
        connections: BrokerConnections,
        clock: Callable[[], float] = time.time,
        limits: FenceLimits | None = None,
    ) -> None:
        """`clock` gives seconds since 1970; it stamps records, and no limit depends on it."""
        self._admins = admins
        self._topics = topics
        self._writer = writer
        self._connections = connections
        self._clock = clock
        self._limits = limits or FenceLimits()
        self._setting = SegmentSetting(admins)

    def put_up(self, topics: Collection[str], take_away: Callable[[], object]) -> None:
        """Run `take_away`, which deletes ACLs at every broker; then fence the topics that exist.

        Raises:
            FenceNotProven: Not all own fetches came back within the limits. It holds for all of the
                topics, of which some may be fenced.
            Unavailable: Kafka cannot be reached, or the setting could not be taken back.
        """
        take_away()
        # Whether a topic is there is what holds once the ACLs are gone.
        there = self._topics.describe(topics).keys()
        if not there:
            return
        try:
            self._prove(there)
        except FenceNotProven:
            # That it is not proven must be known, whatever else fails; the next fence restores.
            with suppress(Unavailable):
                self._setting.restore(there)
            raise
        except BaseException:
            self._setting.restore(there)
            raise
        self._setting.restore(there)

    def shortened(self, topics: Collection[str]) -> frozenset[str]:
        """Topics that a fence left with its setting, because the process ended within it."""
        return self._setting.shortened(topics)

    def restore(self, topics: Collection[str]) -> None:
        """Take back the setting of fences that were never finished. Raises Unavailable."""
        self._setting.restore(topics)

    def _prove(self, topics: Collection[str]) -> None:
        deadline = time.monotonic() + self._limits.total_s
        while True:
            try:
                self._attempt(topics, deadline)
                return
            except FenceNotProven:
                raise
            except (OSError, ValueError, Unavailable) as error:
                # A leader moved, a connection broke: begin anew, with fetches for new records.
                if time.monotonic() > deadline:
                    raise FenceNotProven(topics, str(error)) from None
                time.sleep(self._limits.pause_s)

    def _attempt(self, topics: Collection[str], deadline: float) -> None:
        replicas = self._replicas(topics)
        with ExitStack() as stack:
            # Three requests of this thread take about as long as a change of settings.
            meanwhile = stack.enter_context(ThreadPoolExecutor(1))
            shortening = meanwhile.submit(self._setting.shorten, topics)
            first = self._write(replicas, ahead_ms=0)
            parked: list[ParkedFetch] = []
            for partition, addresses in replicas.items():
                place = FetchPlace(partition.topic, partition.number, first[partition])
                for address in addresses:
                    connection = stack.enter_context(self._connections.lent(address))
                    parked.append(ParkedFetch(connection, place))
            # Requests wait in one line at a broker: when it has answered a later one, it has taken
            # up our fetches.
            for address in {address for addresses in replicas.values() for address in addresses}:
                ping(stack.enter_context(self._connections.lent(address)))
            shortening.result()
            while parked:
                if time.monotonic() > deadline:
                    raise FenceNotProven(topics, f"{len(parked)} own fetches did not come back")
                self._write(replicas, _AHEAD_MS)
                parked = self._still_parked(parked)

    def _still_parked(self, parked: Sequence[ParkedFetch]) -> list[ParkedFetch]:
        until = time.monotonic() + self._limits.record_s
        return [fetch for fetch in parked if not fetch.came_back(until - time.monotonic())]

    def _replicas(self, topics: Collection[str]) -> dict[Partition, list[BrokerAddress]]:
        """By partition, the live brokers that hold it: a client may fetch from any of them."""
        descriptions = self._topics.describe(topics)
        if missing := set(topics) - descriptions.keys():
            raise Unavailable(f"Kafka does not serve the topic {min(missing)}")
        brokers = live_brokers(self._admins)
        return {
            Partition(topic, part.id): _addresses(part, brokers)
            for topic, description in descriptions.items()
            for part in description.partitions
        }

    def _write(self, partitions: Collection[Partition], ahead_ms: int) -> dict[Partition, int]:
        """Write a fence record to each partition, so far ahead; the offsets by partition."""
        newest = self._newest(partitions)
        now = int(self._clock() * 1000)
        return self._writer.write({at: max(now, newest[at]) + ahead_ms for at in partitions})

    def _newest(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The largest timestamp in each partition, in ms; -1 in an empty one."""
        by_time: OffsetSpec = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        request = {TopicPartition(*partition): by_time for partition in partitions}
        futures = self._admins.reads.list_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        results = all_finished(futures.values(), "read the newest times in the topics")
        return {
            Partition(place.topic, place.partition): result.timestamp
            for place, result in zip(futures, results, strict=True)
        }


def _addresses(
    partition: TopicPartitionInfo, brokers: dict[int, BrokerAddress]
) -> list[BrokerAddress]:
    if partition.leader is None or partition.leader.id not in brokers:
        raise Unavailable(f"partition {partition.id} has no leader")
    # Who is not listed as alive is taken for dead, and its connections for closed; a broker that
    # has lost its controllers, but neither the leader nor its clients, is left out (README).
    return [brokers[node.id] for node in partition.replicas if node.id in brokers]
