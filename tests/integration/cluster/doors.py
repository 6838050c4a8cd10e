"""Doors: ports of a cluster's nodes through which the others come, each of whom can be shut out.

A node tells the others the address of its controller. So one door is for all of them, and it looks
whose a connection is.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from deploy.ports import LOOPBACK, free_port

_CHUNK = 65_536
_WAIT_S = 0.2
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class Door:
    """A port on loopback that leads to another one, but not for nodes that are shut out.

    `processes` gives the id of each node's process, by the node's number.
    """

    def __init__(self, processes: Callable[[], Mapping[int, int]]) -> None:
        self.port = free_port()
        self._processes = processes
        self._to: int | None = None
        self._out: frozenset[int] = frozenset()
        self._open: dict[socket.socket, int | None] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        """Lead to this port."""
        self._to = port

    def shut_out(self, *nodes: int) -> None:
        """Break off the connections of these nodes, and let no more of theirs through."""
        with self._lock:
            self._out = frozenset(nodes)
            for each, node in self._open.items():
                if node in self._out:
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the port."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near, port), daemon=True).start()

    def _carry(self, near: socket.socket, port: int) -> None:
        node = owner_of(port, self.port, self._processes())
        with self._lock:
            is_out = node in self._out or self._to is None
            if not is_out:
                self._open[near] = node
        if is_out:
            near.close()
            return
        try:
            with socket.create_connection((LOOPBACK, self._to or 0), timeout=5) as far:
                _copy_both_ways(near, far)
        except OSError:
            pass
        finally:
            with self._lock:
                del self._open[near]
            near.close()


def owner_of(port: int, to: int, processes: Mapping[int, int]) -> int | None:
    """Which of the processes, by their keys, has the connection from one port to another one."""
    inode = _inode(port, to)
    for key, pid in processes.items():
        with suppress(OSError):
            for each in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(each.readlink()) == f"socket:[{inode}]":
                        return key
    return None


def _inode(port: int, to: int) -> str | None:
    for table in _TABLES:
        for line in table.read_text().splitlines()[1:]:
            _, own, other, *rest = line.split()
            if (int(own.rpartition(":")[2], 16), int(other.rpartition(":")[2], 16)) == (port, to):
                return rest[6]
    return None


def _copy_both_ways(near: socket.socket, far: socket.socket) -> None:
    for each in (near, far):
        each.settimeout(5)
    with selectors.DefaultSelector() as ready:
        ready.register(near, selectors.EVENT_READ, far)
        ready.register(far, selectors.EVENT_READ, near)
        while True:
            for key, _ in ready.select(_WAIT_S):
                source = near if key.data is far else far
                data = source.recv(_CHUNK)
                if not data:
                    return
                key.data.sendall(data)
