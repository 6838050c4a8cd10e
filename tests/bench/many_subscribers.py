"""A revocation that takes 100 topics from a role with 1,000 users, all of whom subscribe.

A union of seven streams and an eighth, `common`. Each of 100 groups of users reads another set of
the seven, so there are 100 classes, and all users read `common` through one role. Taking that from
the role moves every subscription to another topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import combinations

from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from catalog.permission import Permission
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.bench.crowd import Crowd, Right
from tests.bench.feed import Feed
from tests.bench.figure import Figure, middle
from tests.bench.world import Session, World, until

USERS, CLASSES = 1000, 100
# The first makes the topics to move to; the broker compiles what it does a thousand times over
# until the third.
WARM_UP, RUNS = 3, 5
COMMON, OUTPUT, ROLE = "common", "wide", "HOLDERS"
STREAMS = [f"part{number}" for number in range(7)]
# Every consumer leaves a fetch at the broker for as long: nothing but the fence ends it.
_PARKED_MS = 3000
_PARKED = {"fetch.wait.max.ms": _PARKED_MS, "fetch.min.bytes": 1_000_000}


def revocation_from_many(world: World) -> list[Figure]:
    """The call, and what was written after it had returned and arrived all the same."""
    _prepare(world)
    with ExitStack() as open_:
        consumers = _subscribe_all(world, open_)
        return _measured(world, consumers)


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """A consumer, and what finds its topics: the consumer's connection waits for its fetches."""

    consumer: Consumer
    topics: AdminClient

    def follow(self) -> None:
        """Read all topics that the subscription has now. It is shown no others."""
        now = {t for t in self.topics.list_topics(timeout=30).topics if t.startswith("out.")}
        if now != {place.topic for place in self.consumer.assignment()}:
            self.consumer.assign([TopicPartition(topic, 0, OFFSET_END) for topic in sorted(now)])

    def sent(self) -> list[float]:
        """When what has arrived was sent (steady clock, seconds)."""
        messages = self.consumer.consume(1000, 0.001)
        values = [m.value() for m in messages if m.error() is None]
        return [json.loads(value)["sent"] / 1e9 for value in values if value]


def _measured(world: World, consumers: Sequence[_Subscriber]) -> list[Figure]:
    producer, topic = world.sender(COMMON)
    late, took, given = 0, [], []
    with Feed(producer, [topic], 20):
        for _ in range(WARM_UP + RUNS):
            _await_all(consumers)
            started = time.monotonic()
            world.revoke(ROLE, "stream", COMMON, "READ TUPLE")
            revoked = time.monotonic()
            took.append(revoked - started)
            late += _written_after(consumers, revoked)
            started = time.monotonic()
            world.grant(ROLE, "stream", COMMON, "READ TUPLE")
            given.append(time.monotonic() - started)
    what = f"{CLASSES} topics, {USERS} users"
    return [
        middle(f"revoke, {what}, the whole call", took[WARM_UP:], "s", 2.0),
        Figure(f"revoke, {what}, making {CLASSES} topics for them to move to", took[0], "s"),
        middle(f"grant, {what}, the whole call", given[WARM_UP:], "s"),
        Figure(f"revoke, {what}, tuples written after it that arrived", late, "tuples", 0),
    ]


def _prepare(world: World) -> None:
    # Those before and after a revocation, and the differences of a grant.
    world.set_limits(classes=3 * CLASSES)
    for stream in (*STREAMS, COMMON):
        world.add_stream(stream)
    union = " UNION ALL ".join(f"SELECT n, sent FROM {stream}" for stream in (*STREAMS, COMMON))
    world.add_query(OUTPUT, union)
    sets = [parts for size in range(1, 8) for parts in combinations(STREAMS, size)][:CLASSES]
    crowd = Crowd(Catalog(world.stack.settings.catalog_url, AUDIT_KEY))
    crowd.add_roles([ROLE, *(_group(number) for number in range(CLASSES))])
    read = Permission.READ_TUPLE
    crowd.grant(
        [
            Right(ROLE, Permission.VIEW_OBJECT, OUTPUT),
            Right(ROLE, Permission.SUBSCRIBE, OUTPUT),
            *(Right(ROLE, Permission.VIEW_OBJECT, stream) for stream in (*STREAMS, COMMON)),
            Right(ROLE, read, COMMON),
            *(Right(_group(i), read, stream) for i, parts in enumerate(sets) for stream in parts),
        ]
    )


def _group(number: int) -> str:
    return f"GROUP{number}"


def _subscribe_all(world: World, open_: ExitStack) -> list[_Subscriber]:
    """Subscribe all users; a consumer for the first of each class. `open_` closes them."""
    crowd = Crowd(Catalog(world.stack.settings.catalog_url, AUDIT_KEY))
    users = {f"holder{i}": [ROLE, _group(i % CLASSES)] for i in range(USERS)}
    crowd.add_users(users)
    tokens = crowd.sessions(users)
    sessions = [Session(world.http, name, tokens[name]) for name in users]
    firsts, others = sessions[:CLASSES], sessions[CLASSES:]
    with ThreadPoolExecutor(4) as pool:
        accesses = list(pool.map(_subscribe, firsts))
        list(pool.map(_subscribe, others))
    for session in firsts:
        session.wait_until_fed()
    return [_subscriber(world, each, open_) for each in accesses]


def _subscribe(session: Session) -> dict[str, str]:
    access: dict[str, str] = session.post(f"/outputs/{OUTPUT}/subscriptions")
    return access


def _subscriber(world: World, access: dict[str, str], open_: ExitStack) -> _Subscriber:
    config = {**world.client_config(access), "log_level": 0}
    group = {"group.id": access["group_prefix"] + "bench"}
    consumer = open_.enter_context(closing(Consumer({**config, **group, **_PARKED})))
    return _Subscriber(consumer, AdminClient(config))


def _await_all(consumers: Sequence[_Subscriber]) -> None:
    """Wait until each has got a tuple that was sent from now on."""
    begin, silent = time.monotonic(), set(range(len(consumers)))

    def heard() -> bool:
        for number in list(silent):
            consumers[number].follow()
            if any(sent > begin for sent in consumers[number].sent()):
                silent.remove(number)
        return not silent

    try:
        until(heard, "for every subscriber to get tuples")
    except TimeoutError as problem:
        topics = sorted(len(consumers[number].consumer.assignment()) for number in silent)
        raise TimeoutError(
            f"{len(silent)} subscribers get nothing; their topics: {topics}"
        ) from problem


def _written_after(consumers: Sequence[_Subscriber], revoked: float) -> int:
    """How many tuples arrive, while all parked fetches end, that were sent after `revoked`."""
    late, deadline = 0, time.monotonic() + 2 * _PARKED_MS / 1000
    while time.monotonic() < deadline:
        for consumer in consumers:
            late += sum(sent > revoked for sent in consumer.sent())
    return late
