"""Connections that wait for a client's next bytes. If too many wait, one is closed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol


class Visitor(Protocol):
    """A connection for which the service has no work at the moment."""

    @property
    def host(self) -> str:
        """The address that it comes from."""

    def put_out(self) -> None:
        """End the connection at once."""


@dataclass
class WaitingRoom:
    """The connections from which a request, or the rest of one, is still to come.

    A connection is a stranger until it has shown a valid token. If there are more than `most`
    strangers, one is closed: of the address with the most strangers, the one that has waited
    longest. So a new client that sends at once is served, however many others are silent. Up to
    `most_known` connections that have shown a valid token stay open.
    """

    most: int
    most_known: int
    _strangers: defaultdict[str, dict[Visitor, None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _known: set[Visitor] = field(default_factory=set)
    _count: int = 0

    def __len__(self) -> int:
        return self._count + len(self._known)

    def enter(self, visitor: Visitor, *, known: bool = False) -> None:
        """Let the visitor wait, after all others of its address."""
        self.leave(visitor)
        if known and len(self._known) < self.most_known:
            self._known.add(visitor)
            return
        self._strangers[visitor.host][visitor] = None
        self._count += 1
        if self._count > self.most:
            crowd = max(self._strangers.values(), key=len)
            longest = next(iter(crowd))
            self.leave(longest)
            longest.put_out()

    def leave(self, visitor: Visitor) -> None:
        """The visitor does not wait any more: it is served, or has left."""
        self._known.discard(visitor)
        crowd = self._strangers.get(visitor.host, {})
        if visitor in crowd:
            del crowd[visitor]
            self._count -= 1
            if not crowd:
                del self._strangers[visitor.host]
