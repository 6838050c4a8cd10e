"""A fetch that a broker parks: it comes back only when the log has rolled behind its offset."""

from __future__ import annotations

import time
from dataclasses import dataclass

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32, int64, string

PARKED_S = 60.0
"""How long the broker may keep the fetch, in seconds; a later answer proves nothing."""

_FETCH, _VERSION = 1, 11
_API_VERSIONS = 18
_CONSUMER = -1
_LARGEST = 2**31 - 1
_NO_EPOCH, _NO_START = -1, -1
_READ_UNCOMMITTED = 0
_NO_SESSION, _NO_SESSION_EPOCH = 0, -1
_NO_REPLICA = -1
_AGAIN_S = 0.002


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """What is fetched: the record at `offset` of one partition."""

    topic: str
    partition: int
    offset: int


class ParkedFetch:
    """One fetch of one place at one broker, leader or follower.

    It asks for 2 GiB (the broker cuts that down to its own limit) but takes a single byte of the
    partition, so no amount of records releases it: of all fetches of this place it is the hardest
    to release. What is left is a newer segment, an error, or the end of `PARKED_S`.
    """

    def __init__(self, connection: BrokerConnection, place: FetchPlace) -> None:
        """Send the fetch."""
        self._connection = connection
        self._place = place
        self._send()

    def came_back(self, timeout_s: float) -> bool:
        """Wait for the answer; whether it came, and shows that a newer segment released it.

        Raises:
            OSError, ValueError: The connection failed, or the fetch came back for another reason.
        """
        deadline = time.monotonic() + timeout_s
        while (answer := self._connection.receive(deadline - time.monotonic())) is not None:
            if time.monotonic() - self._sent >= PARKED_S:
                raise ValueError("the broker kept the fetch for its whole time")
            if holds_records(answer, self._place):
                return True
            # A follower that does not know yet that the record is committed answers with nothing.
            time.sleep(_AGAIN_S)
            self._send()
        return False

    def _send(self) -> None:
        self._sent = time.monotonic()
        self._connection.send(_FETCH, _VERSION, _request(self._place))


def ping(connection: BrokerConnection) -> None:
    """Return when the broker has answered a request. Raises OSError or ValueError."""
    error = connection.request(_API_VERSIONS, 0, b"").int16()
    if error:
        raise ValueError(f"the broker answered with error {error}")


def _request(place: FetchPlace) -> bytes:
    partition = (
        int32(place.partition)
        + int32(_NO_EPOCH)
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
    """Whether the answer to a fetch holds records of its place.

    Raises:
        ValueError: It is an error, throttled, or sends the client elsewhere.
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
