"""A SecAdmin in a process of its own that is killed just before the n-th thing it would change.

It is killed in a call, or in what it does at start, before it serves.

What it would change is not listed here: every commit of the catalog counts, every administrative
request that is not a look-up, and every record.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

import httpx
from fastapi.testclient import TestClient
from sqlalchemy import event

from catalog.passwords import Passwords
from catalog.settings import KafkaSettings, Settings
from secadmin.__main__ import build_platform
from secadmin.control.platform import Platform
from secadmin.control.upkeep import start_up
from secadmin.kafka import connect, fence_writer
from secadmin.kafka.wire import connections
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.service.app import create_app

_LOOKING = ("describe_", "list_", "poll", "flush")
# Requests of the protocol that change nothing: Fetch, ListOffsets, Metadata, SaslHandshake,
# OffsetForLeaderEpoch, DescribeAcls, SaslAuthenticate.
_LOOK_UPS = frozenset({1, 2, 3, 17, 23, 29, 36})
_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Request:
    """A call to the service, as who has the token."""

    method: str
    path: str
    token: str
    body: dict[str, Any] | None = None


def killed_before(settings: Settings, request: Request | None, change: int) -> int | None:
    """Start SecAdmin, call it, and kill it before its `change`-th change (0 is the first).

    Without a request it is what SecAdmin does at start that changes something.

    Gives None when it was killed; the status that the call returned with, when it came that far,
    and 200 for a start.
    """
    context = multiprocessing.get_context("forkserver")
    # Imported once, then forked for each kill.
    context.set_forkserver_preload([__name__])
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_serve_once, args=(settings, request, change, its))
    process.start()
    its.close()
    try:
        status: int = mine.recv()
    except EOFError:
        process.join(_PATIENCE_S)
        assert process.exitcode == -signal.SIGKILL
        return None
    process.join(_PATIENCE_S)
    assert process.exitcode == 0
    return status


def _serve_once(settings: Settings, request: Request | None, change: int, told: Connection) -> None:
    countdown = _Countdown(change)
    for module, name in ((connect, "AdminClient"), (fence_writer, "fence_producer")):
        vars(module)[name] = _watched(vars(module)[name], countdown)
    vars(connections)["BrokerConnection"] = partial(_WatchedConnection, countdown)
    platform = build_platform(settings, Passwords(cost=4))
    event.listen(platform.catalog.engine, "commit", lambda connection: countdown())
    countdown.begin()
    status = 200
    if request is None:
        start_up(platform)
    else:
        status = _called(platform, request)
    countdown.end()
    told.send(status)
    # As after a kill, nothing is tidied up; threads of the library would hold up the exit.
    told.close()
    os._exit(0)


def _called(platform: Platform, request: Request) -> int:
    with TestClient(create_app(platform)) as client:
        headers = {"Authorization": f"Bearer {request.token}"}
        answer: httpx.Response = client.request(
            request.method, request.path, json=request.body, headers=headers
        )
        return answer.status_code


class _Countdown:
    """Kills this process when it has counted down."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._counts = False
        self._lock = Lock()

    def begin(self) -> None:
        self._counts = True

    def end(self) -> None:
        self._counts = False

    def __call__(self) -> None:
        with self._lock:
            if not self._counts:
                return
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1


class _WatchedConnection(BrokerConnection):
    """A connection to a broker, each of whose requests that is not a look-up counts."""

    def __init__(
        self, countdown: _Countdown, address: BrokerAddress, settings: KafkaSettings
    ) -> None:
        self._countdown = countdown
        super().__init__(address, settings)

    def send(self, api: int, version: int, body: bytes) -> None:
        if api not in _LOOK_UPS:
            self._countdown()
        super().send(api, version, body)


def _watched(make: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    return lambda *arguments: _Watched(make(*arguments), countdown)


class _Watched:
    """A client of Kafka, each of whose requests that is not a look-up counts."""

    def __init__(self, client: Any, countdown: _Countdown) -> None:
        self._client = client
        self._countdown = countdown

    def __getattr__(self, name: str) -> Any:
        own = getattr(self._client, name)
        if name.startswith(_LOOKING):
            return own

        def counted(*arguments: Any, **options: Any) -> Any:
            self._countdown()
            return own(*arguments, **options)

        return counted
