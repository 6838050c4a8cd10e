"""TCP links between the nodes of a cluster, each of which can be cut."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress

from deploy.ports import LOOPBACK, free_port

_CHUNK = 65_536
_WAIT_S = 0.2


class Link:
    """A port on loopback that leads to another one until it is cut."""

    def __init__(self) -> None:
        self.port = free_port()
        self._to: int | None = None
        self._cut = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        """Lead to this port."""
        self._to = port

    def cut(self) -> None:
        """Break all connections off, and let none through."""
        self._cut.set()
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        self._cut.clear()

    def close(self) -> None:
        """Close the port."""
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._cut.is_set() or self._to is None:
                near.close()
                continue
            threading.Thread(target=self._carry, args=(near, self._to), daemon=True).start()

    def _carry(self, near: socket.socket, port: int) -> None:
        try:
            far = socket.create_connection((LOOPBACK, port), timeout=5)
        except OSError:
            near.close()
            return
        with self._lock:
            self._open |= {near, far}
        try:
            _copy_both_ways(near, far, self._cut)
        finally:
            with self._lock:
                self._open -= {near, far}
            near.close()
            far.close()


def _copy_both_ways(near: socket.socket, far: socket.socket, cut: threading.Event) -> None:
    for each in (near, far):
        each.settimeout(5)
    with selectors.DefaultSelector() as ready, suppress(OSError):
        ready.register(near, selectors.EVENT_READ, far)
        ready.register(far, selectors.EVENT_READ, near)
        while not cut.is_set():
            for key, _ in ready.select(_WAIT_S):
                source = near if key.data is far else far
                data = source.recv(_CHUNK)
                if not data:
                    return
                key.data.sendall(data)
