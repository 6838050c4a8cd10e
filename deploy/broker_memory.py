"""How much of the broker's memory requests may take, whatever users send.

A broker sets memory aside for a request as soon as it is told the length, which is whatever the
client says. So the longest request is short, and as many users as are let in at once, each with
one such request, leave something of what is set aside for requests to the platform's own clients.
"""

from dataclasses import dataclass

MIB = 1024 * 1024

# The longest record of the platform's topics has 4 MiB, headers and all. A little less than 5 MiB,
# for a buffer with its header takes whole regions of the heap, of 1 MiB.
LONGEST_REQUEST_BYTES = 5 * MIB - 4096
DEFAULT_HEAP_MB = 1536
_LEAST_HEAP_MB = 512
# Before it is logged in a client may say something of this length: a name, a nonce, a proof.
_LONGEST_LOGIN_BYTES = 64 * 1024
_PLATFORMS_REQUESTS = 16
_ROOM_MB = 16
_IDLE_MS = 120_000


@dataclass(frozen=True)
class RequestMemory:
    """What requests may take of a heap of `heap_mb` MB: a little less than half of it.

    Raises:
        ValueError: The heap is too small for a handful of users.
    """

    heap_mb: int = DEFAULT_HEAP_MB

    def __post_init__(self) -> None:
        if self.heap_mb < _LEAST_HEAP_MB:
            raise ValueError(f"the broker's heap must have at least {_LEAST_HEAP_MB} MB")

    @property
    def pool_bytes(self) -> int:
        """All requests that are being read or answered, together."""
        return (self.heap_mb // 2 - _ROOM_MB) * MIB

    @property
    def users_connections(self) -> int:
        """How many connections users may have at once; a client has two or three."""
        return self.pool_bytes // LONGEST_REQUEST_BYTES - _PLATFORMS_REQUESTS

    def properties(self, users_listener: str) -> dict[str, str]:
        """The broker's settings; `users_listener` is the name of the listener for users."""
        prefix = f"listener.name.{users_listener.lower()}"
        return {
            "socket.request.max.bytes": str(LONGEST_REQUEST_BYTES),
            "queued.max.request.bytes": str(self.pool_bytes),
            "sasl.server.max.receive.size": str(_LONGEST_LOGIN_BYTES),
            f"{prefix}.max.connections": str(self.users_connections),
            # A connection on which nothing happens holds a place, and what it has begun to send.
            "connections.max.idle.ms": str(_IDLE_MS),
        }
