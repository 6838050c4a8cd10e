"""How many requests are worked on at once, and how many files may be open."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from catalog.errors import Unavailable
from secadmin.control.platform import Platform
from secadmin.service import body_limit, open_requests, token_checks
from secadmin.service.app import create_app
from secadmin.service.body_limit import MAX_BODY_BYTES, MAX_STRANGERS_BODY_BYTES, BodyLimit
from secadmin.service.door import KNOWN
from secadmin.service.open_files import WANTED, raise_limit
from secadmin.service.open_requests import OpenRequests
from secadmin.service.token_checks import TokenChecks

MOST, STRANGERS = 5, 2
VALID, MADE_UP = b"Bearer valid", b"Bearer made-up"
NONE: Message = {"type": "http.request", "body": b"", "more_body": False}


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_requests, "MOST_OPEN", MOST)
    monkeypatch.setattr(open_requests, "MOST_STRANGERS", STRANGERS)


def is_valid(token: str) -> bool:
    if token == "unknown":
        raise Unavailable("the database is away")
    return token == "valid"


def requested(token: bytes | None) -> Scope:
    headers = [] if token is None else [(b"authorization", token)]
    return {"type": "http", "method": "POST", "path": "/", "headers": headers, "state": {}}


async def status(
    app: ASGIApp, token: bytes | None, *messages: Message, scope: Scope | None = None
) -> int:
    """The status of the answer to a request with these messages. The next one never comes."""
    told: list[Message] = []
    left = list(messages or [NONE])

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        told.append(message)

    await app(scope or requested(token), receive, send)
    return int(told[0]["status"])


class Slow:
    """Answers when it may go on. It says which requests have a valid token, if it `checks`."""

    def __init__(self, *, checks: bool = False) -> None:
        self.checks = checks
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.checks and scope["headers"] == [(b"authorization", VALID)]:
            scope["state"][KNOWN] = True
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


def test_beyond_the_bounds_one_is_told_to_come_again() -> None:
    asyncio.run(_fill_and_empty())


async def _fill_and_empty() -> None:
    slow = Slow()
    limited = OpenRequests(slow, TokenChecks(is_valid))
    for _ in range(2):
        slow.go_on.clear()
        # Those whose token is not valid leave room for the others.
        strangers = begun(status(limited, each) for each in (None, MADE_UP))
        await asyncio.sleep(0)
        assert await status(limited, None) == await status(limited, MADE_UP) == 503
        assert await status(limited, b"Bearer unknown") == 503
        others = begun(status(limited, VALID) for _ in range(MOST - STRANGERS))
        await until(lambda: len(limited._open) == MOST)
        assert await status(limited, VALID) == 503
        slow.go_on.set()
        assert await asyncio.gather(*strangers, *others) == [200] * MOST


def test_who_was_found_to_be_known_leaves_its_place_to_strangers() -> None:
    async def run() -> None:
        slow = Slow(checks=True)
        limited = OpenRequests(slow, TokenChecks(is_valid))
        known = begun(status(limited, VALID) for _ in range(MOST - 1))
        await until(lambda: len(limited._open) == MOST - 1)
        slow.go_on.set()
        assert await status(limited, None) == 200
        await asyncio.gather(*known)

    asyncio.run(run())


def test_only_so_many_tokens_are_checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_checks, "THREADS", 1)
    monkeypatch.setattr(token_checks, "MOST_WAITING", 1)

    async def run() -> None:
        checks = TokenChecks(is_valid)
        results = await asyncio.gather(
            *(checks.has_session(requested(VALID)) for _ in range(3)), return_exceptions=True
        )
        assert results[:2] == [True, True]
        assert isinstance(results[2], Unavailable)

    asyncio.run(run())


@pytest.mark.parametrize("token", [None, MADE_UP, VALID])
def test_who_sends_slowly_takes_no_place(token: bytes | None) -> None:
    async def run() -> None:
        app = create_app(cast(Platform, SimpleNamespace()))
        part: Message = {"type": "http.request", "body": b"{", "more_body": True}
        waiting = begun(status(app, token, part) for _ in range(3 * MOST))
        await asyncio.sleep(0.1)
        assert await status(app, token) == 404, "it is served"
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(run())


async def ok(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})


def sized(size: int) -> Message:
    return {"type": "http.request", "body": b"x" * size, "more_body": False}


@pytest.mark.parametrize(
    ("token", "size", "expected"),
    [
        (None, MAX_STRANGERS_BODY_BYTES, 200),
        (None, MAX_STRANGERS_BODY_BYTES + 1, 413),
        (MADE_UP, MAX_STRANGERS_BODY_BYTES + 1, 413),
        (b"Bearer unknown", MAX_STRANGERS_BODY_BYTES + 1, 503),
        (VALID, MAX_BODY_BYTES, 200),
        (VALID, MAX_BODY_BYTES + 1, 413),
    ],
)
def test_a_large_body_needs_a_valid_token(token: bytes | None, size: int, expected: int) -> None:
    limited = BodyLimit(ok, TokenChecks(is_valid))
    assert asyncio.run(status(limited, token, sized(size))) == expected


def test_only_so_many_large_bodies_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "MOST_LARGE", 2)

    async def run() -> None:
        limited = BodyLimit(ok, TokenChecks(is_valid))
        large = sized(MAX_STRANGERS_BODY_BYTES + 1)
        waiting = begun(status(limited, VALID, {**large, "more_body": True}) for _ in range(2))
        await until(lambda: len(limited._large) == 2)
        assert await status(limited, VALID, large) == 503
        assert await status(limited, VALID) == 200
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert await status(limited, VALID, large) == 200

    asyncio.run(run())


def begun(calls: Iterator[Coroutine[Any, Any, int]]) -> list[asyncio.Task[int]]:
    return [asyncio.create_task(call) for call in calls]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


def test_the_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raise_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == (min(WANTED, hard) if hard != resource.RLIM_INFINITY else WANTED, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
