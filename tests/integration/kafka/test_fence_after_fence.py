"""A fence right behind another one, whatever the clock says, and two that are wanted at once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, repeat
from threading import Barrier, Lock

import pytest

from secadmin.kafka.access import TopicAccess
from secadmin.kafka.fence import Fence
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import Reader, parked_reader, secadmin_producer, write
from tests.integration.kafka.conftest import Parts

LATER = ["later", "f" * 200_000]


def frozen() -> Iterator[float]:
    """All fences are put up within one millisecond."""
    return repeat(time.time())


def set_back() -> Iterator[float]:
    """The clock goes back by an hour after the first fence record."""
    now = time.time()
    return chain([now], repeat(now - 3600))


def ahead_and_back() -> Iterator[float]:
    """The first fence records are stamped 30 minutes ahead, the others rightly."""
    now = time.time()
    return chain([now + 1800, now + 1800], repeat(now))


@contextmanager
def _two_parked(parts: Parts, topic: str) -> Iterator[list[tuple[Credentials, Reader]]]:
    first, second = parts.new_reader(topic), parts.new_reader(topic)
    with (
        parked_reader(parts.settings, first, topic, 1) as one,
        parked_reader(parts.settings, second, topic, 1) as two,
    ):
        yield [(first, one), (second, two)]


@pytest.mark.parametrize("clock", [frozen, set_back, ahead_and_back])
def test_one_after_the_other(parts: Parts, clock: Callable[[], Iterator[float]]) -> None:
    """Each releases what is parked then, on a topic that was empty before."""
    times, topic = clock(), parts.new_topic()
    fence = Fence(
        parts.admins, parts.replicas, parts.writer, parts.connections, lambda: next(times)
    )
    locks: dict[str, Lock] = defaultdict(Lock)
    access = TopicAccess(parts.acls, fence, parts.replicas, lambda name: locks[name])
    producer = secadmin_producer(parts.settings)
    with _two_parked(parts, topic) as parked:
        for number, (credentials, hostile) in enumerate(parked):
            access.withdraw(topic, [credentials.username])
            write(producer, topic, [f"{number}-{value}" for value in LATER])
            hostile.read_until_refused()
            assert not [value for value in hostile.values if value.startswith(f"{number}-")]


def test_two_at_once(parts: Parts) -> None:
    """Two calls take one topic from two principals; when each returns, its own is shut out."""
    topic, together = parts.new_topic(), Barrier(2)
    producer = secadmin_producer(parts.settings)

    def take(number: int, credentials: Credentials) -> None:
        together.wait()
        parts.access.withdraw(topic, [credentials.username])
        write(producer, topic, [f"{number}-{value}" for value in LATER])

    with _two_parked(parts, topic) as parked, ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(take, number, credentials) for number, (credentials, _) in enumerate(parked)
        ]
        for number, (_, hostile) in enumerate(parked):
            hostile.read_until_refused()
            calls[number].result()
            assert not [value for value in hostile.values if value.startswith(f"{number}-")]
