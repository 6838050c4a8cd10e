"""How long a change of rights takes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack

import httpx

from deploy.spare import SpareKeeper
from deploy.supervisor import POLL_S, Supervisor
from tests.bench.feed import Feed, Reader, first_arrival
from tests.bench.figure import Figure, middle
from tests.bench.settled import SETTLED_S
from tests.bench.world import Session, World

RUNS, KILLS, NEW_QUERIES = 15, 5, 5


def revocation(world: World) -> list[Figure]:
    """The call that revokes READ TUPLE from a role with one subscriber, who reads what flows."""
    world.add_stream("revoked")
    world.add_query("watched", "SELECT n FROM revoked")
    bob = world.new_user("REVOKED")
    world.grant("REVOKED", "output", "watched", "VIEW OBJECT", "SUBSCRIBE")
    world.grant("REVOKED", "stream", "revoked", "READ TUPLE")
    consumer = world.subscriber(bob, "watched")
    bob.wait_until_fed()
    producer, topic = world.sender("revoked")
    revoke, grant = [], []
    with Feed(producer, [topic], 200), Reader(consumer):
        for _ in range(RUNS):
            started = time.monotonic()
            world.revoke("REVOKED", "stream", "revoked", "READ TUPLE")
            between = time.monotonic()
            world.grant("REVOKED", "stream", "revoked", "READ TUPLE")
            revoke.append((between - started) * 1000)
            grant.append((time.monotonic() - between) * 1000)
    return [
        middle("revoke, one topic, the whole call", revoke, "ms", 250.0),
        Figure("revoke, one topic, the slowest", max(revoke), "ms"),
        middle("grant, one topic, the whole call", grant, "ms"),
    ]


def recovery(world: World) -> list[Figure]:
    """From a kill of SecAdmin until a revocation is answered again, by the one that came back."""
    world.add_stream("recovered")
    world.new_user("RECOVERED")
    supervisor = Supervisor.of(world.stack, SpareKeeper(world.stack))
    took = []
    for _ in range(KILLS):
        world.grant("RECOVERED", "stream", "recovered", "READ TUPLE")
        started = time.monotonic()
        os.kill(world.pid("secadmin"), signal.SIGKILL)
        while not _is_revoked(world):
            supervisor.tick()
            time.sleep(POLL_S)
        took.append(time.monotonic() - started)
    return [
        middle("SecAdmin killed, until a revocation is answered", took, "s"),
        Figure("SecAdmin killed, the slowest", max(took), "s"),
    ]


def _is_revoked(world: World) -> bool:
    """Whether SecAdmin answered; while it is away, nobody listens."""
    try:
        world.revoke("RECOVERED", "stream", "recovered", "READ TUPLE")
    except httpx.TransportError:
        return False
    return True


def subscription(world: World) -> list[Figure]:
    """From the call to the first tuple at a plain consumer, in a class that is there and a new.

    A new query is measured in the same way: from the call that adds it.
    """
    streams = ("sub1", "sub2", "sub3")
    with ExitStack() as feeds:
        for stream in streams:
            world.add_stream(stream)
            producer, topic = world.sender(stream)
            feeds.enter_context(Feed(producer, [topic], 100))
        world.add_query("some", " UNION ALL ".join(f"SELECT n FROM {stream}" for stream in streams))
        existing, new = [], []
        for role, read in {"SUB1": streams[:1], "SUB2": streams[1:2], "SUB12": streams[:2]}.items():
            user = _grant(world, role, read)
            new.append(_first_tuple_s(world, role))
            user.wait_until_fed()
            existing += [_first_tuple_s(world, role) for _ in range(3)]
        settled = []
        for role, read in {"SUB3": streams[2:], "SUB23": streams[1:], "SUB123": streams}.items():
            _grant(world, role, read)
            time.sleep(SETTLED_S)
            settled.append(_first_tuple_s(world, role))
        world.grant("ADMIN", "stream", "sub1", "READ TUPLE")
        added = [_first_result_s(world, number) for number in range(1, 1 + NEW_QUERIES)]
    return [
        middle("subscribe to an existing class, to the first tuple", existing, "s", 2.0),
        middle("subscribe to a new class, to the first tuple", new, "s", 2.0),
        middle("the same of a query that has not changed for minutes", settled, "s", 2.0),
        middle("a new query, from its call to its first result", added, "s", 5.0),
        Figure("a new query, the slowest", max(added), "s"),
    ]


def _grant(world: World, role: str, streams: Sequence[str]) -> Session:
    """A user with the role, which may subscribe and read these streams."""
    user = world.new_user(role)
    world.grant(role, "output", "some", "VIEW OBJECT", "SUBSCRIBE")
    for stream in streams:
        world.grant(role, "stream", stream, "READ TUPLE")
    return user


def _first_result_s(world: World, number: int) -> float:
    """Of a query that the administrator adds and subscribes to; each has a condition of its own."""
    query = f"added{number}"
    started = time.monotonic()
    world.add_query(query, f"SELECT n FROM sub1 WHERE n > -{number}")
    consumer = world.subscriber(world.admin, query)
    took = first_arrival(consumer) - started
    consumer.close()
    return took


def _first_tuple_s(world: World, role: str) -> float:
    user = world.new_user(role)
    started = time.monotonic()
    consumer = world.subscriber(user, "some")
    took = first_arrival(consumer) - started
    consumer.close()
    return took
