"""Anchors: places outside the database that keep the audit log's heads.

Each anchor has a sender in the background, so no call waits for an anchor. If an anchor cannot be
reached, its sender tries again with the newest head, which covers all older heads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from catalog.audit_head import Head, KeptHeads, seal, unseal
from catalog.audit_key import AuditKey
from catalog.clock import Clock
from catalog.errors import PlatformError, Unavailable

log = logging.getLogger(__name__)
EVERY_S = 60.0
"""A new head is sent after each change, and also at this interval."""
AGAIN_S = 1.0
MOST_HEADS = 200_000
"""How many of an anchor's newest heads are compared: 4 months with one change a minute."""
_CLOSING_S = 8.0
_READ_PATIENCE_S = 30.0


class Anchor(Protocol):
    """A place that keeps lines. It may lose the oldest lines, but never the newest."""

    @property
    def place(self) -> str:
        """The name of the place, for messages."""

    def append(self, line: bytes) -> None:
        """Keep the line, which has no line end. Raises PlatformError or OSError."""

    def read(self, most: int) -> Iterable[bytes]:
        """The newest lines, at most `most`. Raises PlatformError or OSError."""

    def close(self) -> None:
        """Close connections."""


@dataclass(frozen=True, slots=True)
class AnchorState:
    """The state of an anchor: its heads, if they can be read, and its fault, if it has one.

    `sent` is the newest head that this service has sent there. `behind` says that a newer head
    could not be sent yet. `unreadable` is the number of lines that another key made.
    """

    kept: KeptHeads
    sent: Head | None
    behind: bool
    unreadable: int
    problem: str | None

    @property
    def lost(self) -> Head | None:
        """The head that was sent but is not there any more, or None."""
        gone = self.problem is None and self.sent is not None and self.sent not in self.kept.heads
        return self.sent if gone else None


class Sender:
    """Sends heads to one anchor in a thread of its own."""

    def __init__(
        self, anchor: Anchor, key: AuditKey, clock: Clock, newest: Callable[[], Head]
    ) -> None:
        """`newest` reads the head from the database."""
        self.anchor = anchor
        self._key, self._clock, self._newest = key, clock, newest
        self._change = threading.Condition()
        self._waiting: Head | None = None
        self._sent: Head | None = None
        self._failure: str | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="audit-anchor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def offer(self, head: Head) -> None:
        """Send the head soon. If several heads wait, only the newest is sent."""
        with self._change:
            if self._waiting is None or head.seq > self._waiting.seq:
                self._waiting = head
                self._change.notify_all()

    def close(self) -> None:
        """Send the waiting head, if this takes only some seconds, and end the thread."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_S)
        self.anchor.close()

    @property
    def behind(self) -> bool:
        """Say whether a head waits because the anchor could not be reached."""
        with self._change:
            return self._failure is not None

    def state(self) -> AnchorState:
        """The present state of the anchor."""
        with self._change:
            # Read before the anchor, so that a head that is sent in the meantime is not missed.
            sent, failure = self._sent, self._failure
        heads: set[Head] = set()
        unreadable, problem = 0, failure
        try:
            for line in self.anchor.read(MOST_HEADS):
                head = unseal(self._key, line)
                unreadable += head is None
                heads |= {head} if head is not None else set()
        except (PlatformError, OSError) as error:
            problem = f"cannot be read: {_words(error)}"
        kept = KeptHeads(self.anchor.place, frozenset(heads))
        return AnchorState(kept, sent, failure is not None, unreadable, problem)

    def _serve(self) -> None:
        look_at = time.monotonic()
        while True:
            if time.monotonic() >= look_at:
                self._look()
                look_at = time.monotonic() + EVERY_S
            head, closed = self._next(look_at)
            if head is not None and not self._send(head) and not closed:
                with self._change:
                    self._change.wait_for(lambda: self._closed, AGAIN_S)
            if closed:
                return

    def _look(self) -> None:
        try:
            head = self._newest()
        except Exception as failure:
            # Without the database there is no new head. The thread must survive any error.
            log.warning("the audit log's head cannot be read: %s", _words(failure))
            return
        if head != self._sent:
            self.offer(head)

    def _next(self, until: float) -> tuple[Head | None, bool]:
        """The head to send, or None to read the database; and whether the thread is to end."""
        with self._change:
            left_s = max(0.0, until - time.monotonic())
            self._change.wait_for(lambda: self._waiting is not None or self._closed, left_s)
            head, self._waiting = self._waiting, None
            return head, self._closed

    def _send(self, head: Head) -> bool:
        try:
            self.anchor.append(seal(self._key, head, self._clock()))
        except Exception as error:
            # The thread must survive any error, and the head must still be sent.
            if self._failure is None:
                log.warning("the audit log's heads do not reach %s: %s", self.anchor.place, error)
            with self._change:
                self._failure = f"is behind: {_words(error)}"
                if self._waiting is None:
                    self._waiting = head
            return False
        if self._failure is not None:
            log.warning("the audit log's heads reach %s again", self.anchor.place)
        with self._change:
            self._sent, self._failure = head, None
        return True


def _words(error: Exception) -> str:
    """The message of a known error. For an unexpected error, only its type."""
    if isinstance(error, PlatformError):
        return error.detail
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


class Anchors:
    """All anchors of a service."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders
        # Reading takes memory for many heads, so one caller at a time reads.
        self._reading = threading.Lock()

    def start(self) -> None:
        """Start the senders. Each sends the head at once."""
        for sender in self._senders:
            sender.start()

    def offer(self, head: Head) -> None:
        """Send the head to every anchor soon."""
        for sender in self._senders:
            sender.offer(head)

    def close(self) -> None:
        """Send the waiting heads, if this takes only some seconds, and end."""
        for sender in self._senders:
            sender.close()

    @property
    def behind(self) -> bool:
        """Say whether a head waits for an anchor that could not be reached."""
        return any(sender.behind for sender in self._senders)

    def states(self) -> list[AnchorState]:
        """The state of each anchor. Raises Unavailable if other calls read them for too long."""
        if not self._reading.acquire(timeout=_READ_PATIENCE_S):
            raise Unavailable("other calls verify the audit log at the moment; try again")
        try:
            return [sender.state() for sender in self._senders]
        finally:
            self._reading.release()
