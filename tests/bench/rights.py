"""How long a change of rights takes."""

from __future__ import annotations

import time

from secfilter.pace import Pace
from tests.bench.feed import Feed, first_arrival
from tests.bench.figure import Figure, middle
from tests.bench.world import World

RUNS = 15
_BATCH_S = Pace().query_ms / 1000


def revocation(world: World) -> list[Figure]:
    """The call that revokes READ TUPLE from a role with one subscriber, while data flows."""
    world.add_stream("revoked")
    world.add_query("watched", "SELECT n FROM revoked")
    bob = world.new_user("REVOKED")
    world.grant("REVOKED", "output", "watched", "VIEW OBJECT", "SUBSCRIBE")
    world.grant("REVOKED", "stream", "revoked", "READ TUPLE")
    world.subscriber(bob, "watched").close()
    bob.wait_until_fed()
    producer, topic = world.sender("revoked")
    revoke, grant = [], []
    with Feed(producer, [topic], 200):
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


def subscription(world: World) -> list[Figure]:
    """From the call to the first tuple at a plain consumer, in a class that is there and a new."""
    for stream in ("sub1", "sub2"):
        world.add_stream(stream)
    world.add_query("both", "SELECT n FROM sub1 UNION ALL SELECT n FROM sub2")
    reads = {"SUB1": ["sub1"], "SUB2": ["sub2"], "SUB12": ["sub1", "sub2"]}
    new, existing = [], []
    (one, in_one), (two, in_two) = (world.sender(stream) for stream in ("sub1", "sub2"))
    with Feed(one, [in_one], 100), Feed(two, [in_two], 100):
        for role, streams in reads.items():
            user = world.new_user(role)
            world.grant(role, "output", "both", "VIEW OBJECT", "SUBSCRIBE")
            for stream in streams:
                world.grant(role, "stream", stream, "READ TUPLE")
            new.append(_first_tuple_s(world, role))
            user.wait_until_fed()
            existing += [_first_tuple_s(world, role) for _ in range(3)]
    return [
        middle("subscribe to an existing class, to the first tuple", existing, "s", 2.0),
        # One batch, and three seconds.
        middle("subscribe to a new class, to the first tuple", new, "s", _BATCH_S + 3.0),
    ]


def _first_tuple_s(world: World, role: str) -> float:
    user = world.new_user(role)
    started = time.monotonic()
    consumer = world.subscriber(user, "both")
    took = first_arrival(consumer) - started
    consumer.close()
    return took
