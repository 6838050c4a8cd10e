"""How many requests are worked on at once, and how many files may be open."""

from __future__ import annotations

import asyncio
import resource

import pytest
from starlette.types import Message, Receive, Scope, Send

from secadmin.service import open_requests
from secadmin.service.open_files import WANTED, raise_limit
from secadmin.service.open_requests import OpenRequests

MOST, WITHOUT_TOKEN = 5, 2


def test_beyond_the_bounds_one_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_requests, "MOST_OPEN", MOST)
    monkeypatch.setattr(open_requests, "MOST_WITHOUT_TOKEN", WITHOUT_TOKEN)
    asyncio.run(_fill_and_empty())


async def _fill_and_empty() -> None:
    go_on = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    limited = OpenRequests(app)

    async def status(*headers: tuple[bytes, bytes]) -> int:
        told: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            told.append(message)

        scope = {"type": "http", "headers": list(headers)}
        await limited(scope, receive, send)
        return int(told[0]["status"])

    token = (b"authorization", b"Bearer x")
    for _ in range(2):
        go_on.clear()
        # Those without a token leave room for the others.
        strangers = [asyncio.create_task(status()) for _ in range(WITHOUT_TOKEN)]
        await asyncio.sleep(0)
        assert await status() == 503
        others = [asyncio.create_task(status(token)) for _ in range(MOST - WITHOUT_TOKEN)]
        await asyncio.sleep(0)
        assert await status(token) == 503
        go_on.set()
        assert await asyncio.gather(*strangers, *others) == [200] * MOST


def test_the_limit_of_open_files_is_raised() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raise_limit()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == (min(WANTED, hard) if hard != resource.RLIM_INFINITY else WANTED, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
