"""Requests of several threads at a time, sent as one.

The cluster commits a change of ACLs or settings in tens of milliseconds, and a broker takes up one
request of a connection at a time; but one request may change many things.
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
        """`send` carries out items in one request; it gives each item's failure, or None."""
        self._send = send
        self._waiting: list[tuple[_Item, Future[None]]] = []
        self._under_way = False
        self._changed = Condition()

    def run(self, items: Sequence[_Item]) -> None:
        """Return when all items have been carried out. Raises the first failure of one of them."""
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
        """Send what waits, in this thread; the others go on collecting meanwhile."""
        batch, self._waiting = self._waiting, []
        self._under_way = True
        self._changed.release()
        try:
            failures = self._send([item for item, _ in batch])
        except Exception as error:
            # It is raised again in every thread that waits.
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
