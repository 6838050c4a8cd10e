"""Sends the requests of several threads as one request.

The cluster needs tens of milliseconds to commit a change of ACLs or settings, and a broker handles
one request of a connection at a time. But one request may change many things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Grouped(Generic[_Item]):
    """Collects items while a request is under way, and sends them all in the next one."""

    def __init__(self, send: Callable[[Sequence[_Item]], Sequence[Exception | None]]) -> None:
        """`send` carries out items in one request. It gives a failure or None for each item."""
        self._send = send
        self._waiting: list[tuple[_Item, Future[None]]] = []
        self._under_way = False
        self._changed = Condition()

    def run(self, items: Sequence[_Item]) -> None:
        """Carry out the items, and wait for the end. Raises the first failure of an item."""
        futures: list[Future[None]] = [Future() for _ in items]
        with self._changed:
            self._waiting += zip(items, futures, strict=True)
            while not all(future.done() for future in futures):
                if self._under_way:
                    self._changed.wait()
                else:
                    self._send_waiting()
        for future in futures:
            future.result()

    def _send_waiting(self) -> None:
        """Send all waiting items in this thread. Other threads may add items in the meantime."""
        batch, self._waiting = self._waiting, []
        self._under_way = True
        self._changed.release()
        try:
            failures = self._send([item for item, _ in batch])
        except Exception as error:
            # Every waiting thread raises it again.
            failures = [error] * len(batch)
        finally:
            self._changed.acquire()
            self._under_way = False
        for (_, future), failure in zip(batch, failures, strict=True):
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
        self._changed.notify_all()
