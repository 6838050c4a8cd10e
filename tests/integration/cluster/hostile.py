"""A hostile client at each node of a cluster, which goes on reading after its right is taken."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from catalog.errors import Unavailable
from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.connection import BrokerConnection
from tests.integration.cluster.kafka_cluster import KafkaCluster, Member
from tests.integration.service.revocations.raw_fetch import (
    TOPIC_AUTHORIZATION_FAILED,
    FetchLimits,
    read_fetch,
    send_fetch,
)

PARKED = FetchLimits(60_000, 2**31 - 1)
POLLING = FetchLimits(100, 1)
LATER = b"later"
_LOOK_S, _AGAIN_S = 0.2, 0.05


@dataclass(eq=False)
class Hostile(threading.Thread):
    """Fetches partition 0 of the topic from one node, whichever leads, over and over.

    `errors` has the codes of the answers; `served` is when it was last answered without an error.
    """

    cluster: KafkaCluster
    member: Member
    credentials: Credentials
    topic: str
    limits: FetchLimits
    offset: int = 0
    records: bytes = b""
    errors: list[int] = field(default_factory=list)
    served: float = float("-inf")
    sent: float = float("-inf")
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        while not self._over.is_set():
            # A node that is away, or a user that it does not know yet.
            with suppress(OSError, ValueError, Unavailable):
                connection = self.cluster.connect(self.member, self.credentials)
                try:
                    self._read(connection)
                finally:
                    connection.close()
            self._over.wait(_AGAIN_S)

    def has_a_fetch_under_way(self) -> bool:
        """Whether it waits for an answer for so long that the node must have parked the fetch."""
        return self.served < self.sent < time.monotonic() - 1

    def leaks(self) -> bool:
        """Whether it got a record that was written later."""
        return LATER in self.records

    def is_refused(self) -> bool:
        """Whether the newest answer was that it has no right."""
        return self.errors[-1:] == [TOPIC_AUTHORIZATION_FAILED]

    def close(self) -> None:
        """Stop."""
        self._over.set()
        self.join()

    def _read(self, connection: BrokerConnection) -> None:
        while not self._over.is_set():
            self.sent = time.monotonic()
            send_fetch(connection, self.topic, self.offset, self.limits)
            while (answer := connection.receive(_LOOK_S)) is None:
                if self._over.is_set():
                    return
            fetched = read_fetch(answer, self.offset)
            self.records += fetched.records
            self.offset = fetched.next_offset
            self.errors.append(fetched.error)
            if fetched.error:
                self._over.wait(_AGAIN_S)
            else:
                self.served = time.monotonic()
