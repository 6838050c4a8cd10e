"""Who waits for a client's next bytes, for how long, and who has to go where too many do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol


class Visitor(Protocol):
    """A connection that the service does not work for at the moment."""

    @property
    def host(self) -> str:
        """The address that it comes from."""

    def put_out(self) -> None:
        """End the connection at once."""


@dataclass
class WaitingRoom:
    """The connections from which a request, or the rest of one, is still to come.

    Strangers are those that have not shown a valid token. Where they are more than `most`, the one
    that has waited longest goes, of those of the address that most of them come from: who has just
    come and speaks at once is served, however many are silent. Those that have shown one are left
    alone, up to `most_known`.
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
        """Let the visitor wait, as the last of its address."""
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
        """The visitor is served, or gone."""
        self._known.discard(visitor)
        crowd = self._strangers.get(visitor.host, {})
        if visitor in crowd:
            del crowd[visitor]
            self._count -= 1
            if not crowd:
                del self._strangers[visitor.host]
