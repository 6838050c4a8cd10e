"""What a right of one user costs, while 10,000 users subscribe to one output, in 16 classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations

from catalog.permission import Permission
from catalog.store import Catalog
from tests.audit_key import AUDIT_KEY
from tests.bench.crowd import Crowd, Right
from tests.bench.figure import Figure, middle
from tests.bench.world import Session, World

USERS, NEW = 10_000, 10
COMMON, OUTPUT, ALL, LONE = "shared_by_all", "crowded", "CROWD", "LONE"
STREAMS = [f"share{number}" for number in range(4)]
SETS = [parts for size in range(5) for parts in combinations(STREAMS, size)]
# The first calls make the class that the others find.
WARM_UP, RUNS = 2, 10
_AT_ONCE = 4


def crowded_classes(world: World) -> list[Figure]:
    """A grant to one user, its revocation, and a subscription to a class that there is."""
    sessions = _prepare(world)
    started = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_subscribe, sessions[:USERS]))
    all_s = time.monotonic() - started
    given, taken = [], []
    for _ in range(WARM_UP + RUNS):
        given.append(_took_ms(lambda: world.grant(LONE, "stream", STREAMS[0], "READ TUPLE")))
        taken.append(_took_ms(lambda: world.revoke(LONE, "stream", STREAMS[0], "READ TUPLE")))
    new = [_took_ms(partial(_subscribe, each)) for each in sessions[USERS:]]
    what = f"{USERS} subscribers in {len(SETS)} classes"
    return [
        middle(f"{what}: grant to one user, the whole call", given[WARM_UP:], "ms", 200),
        middle(f"{what}: revoke from one user, the whole call", taken[WARM_UP:], "ms", 200),
        middle(f"{what}: one more subscribes", new, "ms", 500),
        Figure(f"{what}: to subscribe all of them, {_AT_ONCE} at once", all_s, "s"),
    ]


def _prepare(world: World) -> list[Session]:
    """All users, logged in. One of them has the role LONE, which reads nothing yet."""
    world.set_limits(classes=4 * len(SETS))
    for stream in (*STREAMS, COMMON):
        world.add_stream(stream)
    union = " UNION ALL ".join(f"SELECT n, sent FROM {stream}" for stream in (*STREAMS, COMMON))
    world.add_query(OUTPUT, union)
    crowd = Crowd(Catalog(world.stack.settings.catalog_url, AUDIT_KEY))
    groups = [f"CLASS{number}" for number in range(len(SETS))]
    crowd.add_roles([ALL, LONE, *groups])
    crowd.grant(
        [
            Right(ALL, Permission.VIEW_OBJECT, OUTPUT),
            Right(ALL, Permission.SUBSCRIBE, OUTPUT),
            Right(ALL, Permission.READ_TUPLE, COMMON),
            *(
                Right(group, Permission.READ_TUPLE, stream)
                for group, parts in zip(groups, SETS, strict=True)
                for stream in parts
            ),
        ]
    )
    roles = {f"crowd{n}": [ALL, groups[n % len(groups)]] for n in range(USERS + NEW)}
    # The first one reads the common stream alone.
    roles["crowd0"].append(LONE)
    crowd.add_users(roles)
    tokens = crowd.sessions(roles)
    return [Session(world.http, name, tokens[name]) for name in roles]


def _subscribe(session: Session) -> None:
    session.post(f"/outputs/{OUTPUT}/subscriptions")


def _took_ms(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return (time.monotonic() - started) * 1_000
