"""A fetch that a broker parks. It comes back only when the log has rolled after its offset."""

from __future__ import annotations

import time
from dataclasses import dataclass

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32, int64, string

PARKED_S = 60.0
"""The broker may keep the fetch for so many seconds. A later answer proves nothing."""

_FETCH, _VERSION = 1, 11
_API_VERSIONS = 18
_CONSUMER = -1
_LARGEST = 2**31 - 1
_NO_START = -1
_READ_UNCOMMITTED = 0
_NO_SESSION, _NO_SESSION_EPOCH = 0, -1
_NO_REPLICA = -1
_AGAIN_S = 0.002


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """The record to fetch: the one at `offset` of a partition.

    With an `epoch`, a broker serves the fetch only if it knows this epoch of the partition's leader
    and no later one.
    """

    topic: str
    partition: int
    offset: int
    epoch: int = -1


class ParkedFetch:
    """One fetch of one place at one broker, which may be the leader or a follower.

    It waits for at least 2 GiB (the broker lowers that to its own limit), but accepts only one byte
    of the partition. So no number of records releases it, and no other fetch of this place is
    harder to release. Only a newer segment, an error or the end of `PARKED_S` releases it.
    """

    def __init__(self, connection: BrokerConnection, place: FetchPlace) -> None:
        """Send the fetch."""
        self._connection = connection
        self._place = place
        self._send()

    def came_back(self, timeout_s: float) -> bool:
        """Wait for the answer. True means that it came because there is a newer segment.

        Raises:
            OSError, ValueError: The connection failed, or the fetch came back for another reason.
        """
        deadline = time.monotonic() + timeout_s
        while (answer := self._connection.receive(deadline - time.monotonic())) is not None:
            if time.monotonic() - self._sent >= PARKED_S:
                raise ValueError("the broker kept the fetch for its whole time")
            if holds_records(answer, self._place):
                return True
            # A follower answers without records if it does not know yet that they are committed.
            time.sleep(_AGAIN_S)
            self._send()
        return False

    def _send(self) -> None:
        self._sent = time.monotonic()
        self._connection.send(_FETCH, _VERSION, _request(self._place))


def ping(connection: BrokerConnection) -> None:
    """Send a small request, and wait for its answer. Raises OSError or ValueError."""
    error = connection.request(_API_VERSIONS, 0, b"").int16()
    if error:
        raise ValueError(f"the broker answered with error {error}")


def _request(place: FetchPlace) -> bytes:
    partition = (
        int32(place.partition)
        + int32(place.epoch)
        + int64(place.offset)
        + int64(_NO_START)
        + int32(1)
    )
    return (
        int32(_CONSUMER)
        + int32(int(PARKED_S * 1000))
        + int32(_LARGEST)
        + int32(_LARGEST)
        + int8(_READ_UNCOMMITTED)
        + int32(_NO_SESSION)
        + int32(_NO_SESSION_EPOCH)
        + (int32(1) + string(place.topic) + int32(1) + partition)
        + int32(0)
        + string("")
    )


def holds_records(answer: Reader, place: FetchPlace) -> bool:
    """Say whether the answer to a fetch holds records of its place.

    Raises:
        ValueError: The answer is an error, is throttled, or sends the client to another broker.
    """
    throttled_ms, error = answer.int32(), answer.int16()
    answer.int32()
    if error or throttled_ms or answer.int32() != 1:
        raise ValueError(f"the broker did not serve the fetch (error {error})")
    answer.string()
    if answer.int32() != 1 or answer.int32() != place.partition:
        raise ValueError("the broker answered for another partition")
    error = answer.int16()
    for _ in range(3):
        answer.int64()
    for _ in range(max(0, answer.int32())):
        answer.int64()
        answer.int64()
    if error or answer.int32() != _NO_REPLICA:
        raise ValueError(f"the broker did not serve the fetch (error {error})")
    return bool(answer.octets())
