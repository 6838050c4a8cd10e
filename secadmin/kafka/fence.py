"""The fence. After it, no fetch that was allowed earlier gets a record that is written later.

Kafka checks the rights of a fetch only when the fetch arrives. A fetch that is parked at the broker
gets its answer later without another check, so it outlives the deletion of its ACL. But the broker
answers a parked fetch at once if its offset is in an older segment than the log's end. That answer
has only records from before the roll, and the client's next fetch is refused. So the fence rolls
the log, and proves that the log has rolled:

1. The ACLs are deleted. The brokers that do not show this lose their replicas
   (`secadmin.kafka.replicas`).
2. A first fence record is written. It gets its offset after the ACL is gone, so no fetch that was
   allowed earlier asks for a later offset. At the same time `segment.ms` is set to 100. Then a
   record begins a new segment if it is more than 100 ms newer than the first record of the current
   one. (With 1 ms, nearly every tuple would begin a segment.) The setting comes no earlier, because
   then the first fence record itself would roll the log, to no use.
3. A fetch of our own for exactly that record is parked at each replica. No other fetch is harder to
   release, and it is behind all other fetches that wait.
4. At least one more fence record is written, until our own fetches have come back. Then at each
   replica the log's end is in a newer segment than the first fence record. So it is also in a newer
   segment than every offset of an earlier fetch.
5. The setting is reset.

There are at least two records because an empty segment does not roll, and because followers learn
the end of the log one fetch late. Rolling depends on the time of records. So the later fence
records have a time ahead of the clock and ahead of the newest record.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from catalog.errors import Unavailable
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.fence_writer import FenceWriter, Partition
from secadmin.kafka.replicas import Brokers, Replicas
from secadmin.kafka.segment_setting import ROLL_MS, SegmentSetting
from secadmin.kafka.wire.cluster_view import ClusterView, PartitionView
from secadmin.kafka.wire.connection import BrokerAddress
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.kafka.wire.newest_times import newest_times
from secadmin.kafka.wire.parked_fetch import FetchPlace, ParkedFetch, ping

# How far the time of a later fence record is ahead of the newest time. It begins a segment.
_AHEAD_MS = ROLL_MS + 10


class FenceNotProven(Unavailable):
    """A fetch that was allowed earlier may still wait. So nothing may be written to the topics."""

    title = "Fence not proven"

    def __init__(self, topics: Collection[str], reason: str) -> None:
        super().__init__(
            f"the fence of {', '.join(sorted(topics))} is not proven ({reason}): "
            "nothing may be written there until the revocation has been repeated"
        )


@dataclass(frozen=True, slots=True)
class FenceLimits:
    """Time limits in seconds: in all, for each later fence record, and between attempts."""

    total_s: float = 10.0
    record_s: float = 0.05
    pause_s: float = 0.02


class Fence:
    """Fences topics, several in one call. Threads may fence different topics at the same time.

    Two callers must not fence one topic at the same time: the first to finish would reset the
    setting that the other still needs. So the caller holds the topic's lock.
    """

    def __init__(
        self,
        admins: AdminClients,
        replicas: Replicas,
        writer: FenceWriter,
        connections: BrokerConnections,
        clock: Callable[[], float] = time.time,
        limits: FenceLimits | None = None,
    ) -> None:
        """`clock` gives seconds since 1970. Fence records get it; no time limit depends on it."""
        self._replicas = replicas
        self._writer = writer
        self._connections = connections
        self._clock = clock
        self._limits = limits or FenceLimits()
        self._setting = SegmentSetting(admins, connections)

    def put_up(self, topics: Collection[str], take_away: Callable[[], Brokers]) -> None:
        """Run `take_away`, which deletes ACLs. Then fence those of the topics that exist.

        `take_away` gives the brokers that have shown that the ACLs are gone there. No other broker
        has a replica of the topics.

        Raises:
            FenceNotProven: Not all own fetches came back within the limits. The error names all the
                topics, though some of them may be fenced.
            Unavailable: Kafka cannot be reached, or the setting could not be reset.
        """
        proven = take_away()
        # Only now it counts whether a topic exists, because the ACLs are gone.
        there = self._replicas.view(topics, proven).topics if topics else ()
        if not there:
            return
        try:
            self._prove(there, proven)
        except FenceNotProven:
            # The caller must learn this error. If the reset fails, the next fence resets.
            with suppress(Unavailable):
                self._setting.restore(there)
            raise
        except BaseException:
            self._setting.restore(there)
            raise
        self._setting.restore(there)

    def shortened(self, topics: Collection[str]) -> frozenset[str]:
        """The topics that still have a fence's setting because its process ended too early."""
        return self._setting.shortened(topics)

    def restore(self, topics: Collection[str]) -> None:
        """Reset the setting that unfinished fences left. Raises Unavailable."""
        self._setting.restore(topics)

    def _prove(self, topics: Collection[str], proven: Brokers) -> None:
        deadline = time.monotonic() + self._limits.total_s
        while True:
            try:
                self._attempt(topics, proven, deadline)
                return
            except FenceNotProven:
                raise
            except (OSError, ValueError, Unavailable) as error:
                # A leader moved or a connection broke. Begin again, with fetches for new records.
                if time.monotonic() > deadline:
                    raise FenceNotProven(topics, str(error)) from None
                time.sleep(self._limits.pause_s)

    def _attempt(self, topics: Collection[str], proven: Brokers, deadline: float) -> None:
        view = self._replicas.view(topics, proven)
        if missing := set(topics) - view.topics:
            raise Unavailable(f"Kafka does not serve the topic {min(missing)}")
        places = {Partition(*place): part for place, part in view.partitions.items()}
        replicas = {place: _addresses(place, part, view) for place, part in places.items()}
        with ExitStack() as stack:
            # In parallel: a change of settings takes as long as three requests of this thread.
            meanwhile = stack.enter_context(ThreadPoolExecutor(1))
            shortening = meanwhile.submit(self._setting.shorten, topics)
            first = self._write(view, proven, ahead_ms=0)
            parked: list[ParkedFetch] = []
            for partition, addresses in replicas.items():
                # A replica that does not know the view's epoch may have followed another leader.
                epoch = places[partition].epoch
                place = FetchPlace(*partition, first[partition], epoch)
                for address in addresses:
                    connection = stack.enter_context(self._connections.lent(address))
                    parked.append(ParkedFetch(connection, place))
            # A broker has one queue of requests. When it has answered a later request, it has begun
            # with our fetches.
            for address in {address for addresses in replicas.values() for address in addresses}:
                ping(stack.enter_context(self._connections.lent(address)))
            shortening.result()
            while parked:
                if time.monotonic() > deadline:
                    raise FenceNotProven(topics, f"{len(parked)} own fetches did not come back")
                self._write(view, proven, _AHEAD_MS)
                parked = self._still_parked(parked)

    def _still_parked(self, parked: Sequence[ParkedFetch]) -> list[ParkedFetch]:
        until = time.monotonic() + self._limits.record_s
        return [fetch for fetch in parked if not fetch.came_back(until - time.monotonic())]

    def _write(self, view: ClusterView, proven: Brokers, ahead_ms: int) -> dict[Partition, int]:
        """Write a fence record to each partition, `ahead_ms` ahead. Gives offsets by partition."""
        newest = self._newest(view)
        now = int(self._clock() * 1000)
        stamps = {at: max(now, time) + ahead_ms for at, time in newest.items()}
        return self._writer.write(stamps, proven.values())

    def _newest(self, view: ClusterView) -> dict[Partition, int]:
        """The largest timestamp in each partition in ms, or -1 if the partition is empty."""
        of: defaultdict[int, dict[tuple[str, int], int]] = defaultdict(dict)
        for place, partition in view.partitions.items():
            of[_leader(place, partition)][place] = partition.epoch
        found: dict[Partition, int] = {}
        for leader, epochs in of.items():
            with self._connections.lent(view.brokers[leader]) as connection:
                times = newest_times(connection, epochs)
            if missing := epochs.keys() - times.keys():
                raise ValueError(f"the broker tells no time of {min(missing)[0]}")
            found |= {Partition(*place): time for place, time in times.items()}
        return found


def _addresses(
    place: Partition, partition: PartitionView, view: ClusterView
) -> list[BrokerAddress]:
    """All replicas of a partition. A client may fetch from any of them."""
    _leader(place, partition)
    if dead := set(partition.replicas) - view.brokers.keys():
        raise Unavailable(f"Kafka's broker {min(dead)} has died: its replicas are still to go")
    return [view.brokers[broker] for broker in partition.replicas]


def _leader(place: tuple[str, int], partition: PartitionView) -> int:
    if partition.leader is None:
        raise Unavailable(f"partition {place[1]} of {place[0]} has no leader")
    return partition.leader
