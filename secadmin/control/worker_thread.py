"""A thread that works beside the service until it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class WorkerThread:
    """A thread with that name; `close` ends it. `work` gets the event that is set then."""

    name: str
    work: Callable[[threading.Event], None]
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self.work, args=(self._stop,), name=self.name, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
