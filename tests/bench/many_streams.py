"""Many streams: ingesting at once in one driver, and in one catalog with many roles and users."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from confluent_kafka import Consumer, Producer, TopicPartition

from catalog.engines import INGEST
from catalog.permission import Permission
from catalog.store import Catalog
from catalog.topics import lab_topic
from secfilter.lab import SEPARATOR
from tests.audit_key import AUDIT_KEY
from tests.bench.crowd import PASSWORD, Crowd, Right
from tests.bench.feed import Feed
from tests.bench.figure import Figure, middle
from tests.bench.process_group import ProcessGroup
from tests.bench.settled import SETTLED_S
from tests.bench.world import Session, World

INGESTING = (50, 200)
STREAMS, ROLES, USERS = 1000, 200, 1000
# Each user has so many roles, and each stream is granted to so many.
ROLES_A_USER, ROLES_A_STREAM = 5, 5
RUNS = 20
LIMIT_MS = 200.0
WARM_S = 20.0
# Each several batches of ingest: work is done, and what is late arrives, between two of them.
IDLE_S, ARRIVALS_S = 150.0, 200.0
OUTPUT = "scaled"
_SENT = 2
"""The position of `sent` in a labelled tuple of the bench's schema."""


def scale(world: World) -> Iterable[Figure]:
    """50 streams ingesting, then 200; then 1,000 in the catalog, with 200 roles, 1,000 users."""
    streams: list[str] = []
    for count in INGESTING:
        _add_streams(world, streams, count)
        targets = (0.25, 5.0, 30.0) if count == INGESTING[0] else (None, None, None)
        yield from _ingesting(world, streams, targets)
    # A thousand streams at once are for more than one driver: here they are in the catalog.
    _let_ingest_nothing(world)
    _add_streams(world, streams, STREAMS)
    yield from _big_catalog(world, streams)


def _let_ingest_nothing(world: World) -> None:
    """Stop ingest, and let the service take more streams than one engine can read."""
    world.stack.engines[INGEST].stop()
    world.set_limits(slots=2 * STREAMS)


def _add_streams(world: World, streams: list[str], count: int) -> None:
    new = [f"many{number}" for number in range(len(streams), count)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(world.add_stream, new))
    streams += new


def _ingesting(
    world: World, streams: Sequence[str], targets: tuple[float | None, ...]
) -> Iterable[Figure]:
    config = _config(world)
    consumer = Consumer({**config, "group.id": "bench-lab", "fetch.wait.max.ms": 50})
    consumer.assign([TopicPartition(lab_topic(stream), 0, 0) for stream in streams])
    # A tuple a second for each.
    prefixes = tuple(f"in.{stream}." for stream in streams)
    topics = [t for t in consumer.list_topics(timeout=10).topics if t.startswith(prefixes)]
    with Feed(Producer({**config, "linger.ms": 0}), topics, len(topics)):
        _await_each(consumer, streams)
    runner = world.engine_group()
    time.sleep(SETTLED_S)
    idle = _cores(runner, lambda: time.sleep(IDLE_S))
    found: list[float] = []
    with Feed(Producer({**config, "linger.ms": 0}), topics, len(topics)):
        _arrivals_ms(consumer, WARM_S)
        busy = _cores(runner, lambda: found.extend(_arrivals_ms(consumer, ARRIVALS_S)))
    consumer.close()
    cuts = quantiles(found, n=100)
    what = f"{len(streams)} streams ingesting"
    yield Figure(f"{what}: idle", idle, "cores", targets[0])
    yield Figure(f"{what}, a record a second each: CPU", busy, "cores")
    yield Figure(f"{what}, a record a second each: p50", cuts[49], "ms", targets[1])
    yield Figure(f"{what}, a record a second each: p95", cuts[94], "ms", targets[2])


def _config(world: World) -> dict[str, object]:
    kafka = world.stack.settings.kafka
    return {**kafka.client_config(kafka.secadmin), "log_level": 3}


def _cores(group: ProcessGroup, work: Callable[[], object]) -> float:
    cpu, wall = group.cpu_s(), time.monotonic()
    work()
    return (group.cpu_s() - cpu) / (time.monotonic() - wall)


def _await_each(consumer: Consumer, streams: Sequence[str]) -> None:
    """Wait until a tuple of each stream has come through."""
    silent, deadline = {lab_topic(stream) for stream in streams}, time.monotonic() + 300
    while silent:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(silent)} streams do not flow")
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            silent.discard(message.topic() or "")


def _arrivals_ms(consumer: Consumer, duration_s: float) -> list[float]:
    """From sending to the labelled topic, of what arrives within `duration_s`."""
    found, deadline = [], time.monotonic() + duration_s
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and (value := message.value()):
            sent = int(value.decode().split(SEPARATOR)[_SENT])
            found.append((time.monotonic_ns() - sent) / 1e6)
    return found


def _big_catalog(world: World, streams: Sequence[str]) -> Iterable[Figure]:
    world.add_query(OUTPUT, f"SELECT n FROM {streams[0]}")
    names = _fill(world, streams)
    logins, views, subscriptions = [], [], []
    _times(world, names[0])  # the first subscription makes the class
    for name in names[1 : 1 + RUNS]:
        login, view, subscription = _times(world, name)
        logins.append(login)
        views.append(view)
        subscriptions.append(subscription)
    alls = [_ms(lambda: world.admin.call("GET", "/catalog")) for _ in range(RUNS)]
    what = f"{STREAMS} streams, {ROLES} roles, {USERS} users"
    yield middle(f"{what}: login", logins, "ms", LIMIT_MS)
    yield middle(f"{what}: catalog view of a user", views, "ms", LIMIT_MS)
    yield middle(f"{what}: catalog view of the owner of all streams", alls, "ms", LIMIT_MS)
    yield middle(f"{what}: subscribe", subscriptions, "ms", LIMIT_MS)
    for kind, values in (("login", logins), ("view", views), ("subscribe", subscriptions)):
        yield Figure(f"{what}: {kind}, the slowest of {RUNS}", max(values), "ms")


def _fill(world: World, streams: Sequence[str]) -> list[str]:
    """Roles, grants and users; the users' names."""
    crowd = Crowd(Catalog(world.stack.settings.catalog_url, AUDIT_KEY))
    roles = [f"SCALE{number}" for number in range(ROLES)]
    crowd.add_roles(roles)
    seen = (Permission.VIEW_OBJECT, Permission.READ_TUPLE)
    crowd.grant(
        Right(roles[(number + step * 37) % ROLES], permission, stream)
        for number, stream in enumerate(streams)
        for step in range(ROLES_A_STREAM)
        for permission in seen
    )
    crowd.grant(
        Right(role, permission, name)
        for role in roles
        for permission, name in (
            (Permission.VIEW_CATALOG, "system"),
            (Permission.VIEW_OBJECT, OUTPUT),
            (Permission.SUBSCRIBE, OUTPUT),
        )
    )
    users = {
        f"scaled{number}": [roles[(number + step * 41) % ROLES] for step in range(ROLES_A_USER)]
        for number in range(USERS)
    }
    crowd.add_users(users)
    # Of those that the first stream is granted to, so that there is something to subscribe to.
    return [name for name, held in users.items() if roles[0] in held]


def _times(world: World, name: str) -> tuple[float, float, float]:
    """Milliseconds of login, catalog view and subscription."""
    found: list[Session] = []
    login = _ms(lambda: found.append(world.log_in(name, PASSWORD)))
    (session,) = found
    view = _ms(lambda: session.call("GET", "/catalog"))
    return login, view, _ms(lambda: session.post(f"/outputs/{OUTPUT}/subscriptions"))


def _ms(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return (time.monotonic() - started) * 1000
