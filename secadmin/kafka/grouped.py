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
_Result = TypeVar("_Result")


class Grouped(Generic[_Item, _Result]):
    """Collects items while a request is under way, and sends them all in the next one."""

    def __init__(self, send: Callable[[Sequence[_Item]], Sequence[_Result | Exception]]) -> None:
        """`send` carries out items in one request. It gives a result or a failure for each item."""
        self._send = send
        self._waiting: list[tuple[_Item, Future[_Result]]] = []
        self._under_way = False
        self._changed = Condition()

    def run(self, items: Sequence[_Item]) -> list[_Result]:
        """Carry out the items, and give the results. Raises the first failure of an item."""
        futures: list[Future[_Result]] = [Future() for _ in items]
        with self._changed:
            self._waiting += zip(items, futures, strict=True)
            while not all(future.done() for future in futures):
                if self._under_way:
                    self._changed.wait()
                else:
                    self._send_waiting()
        return [future.result() for future in futures]

    def _send_waiting(self) -> None:
        """Send all waiting items in this thread. Other threads may add items in the meantime."""
        batch, self._waiting = self._waiting, []
        self._under_way = True
        self._changed.release()
        results: Sequence[_Result | Exception]
        try:
            results = self._send([item for item, _ in batch])
        except Exception as error:
            # Every waiting thread raises it again.
            results = [error] * len(batch)
        finally:
            self._changed.acquire()
            self._under_way = False
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._changed.notify_all()
