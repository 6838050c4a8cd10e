"""Policies of roles (002 §4.2): loading one, and what a request costs where there are 1,000."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.models import Object, Role, StreamRow
from catalog.permission import ObjectKind
from catalog.relation import Relation
from catalog.role_views import RoleViews, merged_view
from catalog.stored_form import from_stored
from catalog.view_plan import ViewedStream, through_views
from secadmin.__main__ import build_platform
from secadmin.languages import parse_sql
from tests.bench.figure import Figure, middle
from tests.bench.world import World
from tests.unit.secadmin.xacml import policy_texts as x

POLICIES, REQUESTS = 1_000, 1_500
# The paper's skew, and the number of unique requests among which it chooses.
SKEW, RANKS = 0.223, 300
LOAD_MS, REQUEST_MS = 10.0, 1.0
STREAM = "policed"
T = TypeVar("T")
QUERY = f"SELECT n FROM {STREAM} WHERE n > 7"


def policies(world: World) -> Iterator[Figure]:
    """Milliseconds to load a policy, and to decide on a request and merge the role's policy."""
    world.add_stream(STREAM)
    loads = [_load(world, f"POLICED{number}") for number in range(POLICIES)]
    yield middle("a policy in XACML: the whole call that loads it", loads, "ms", LOAD_MS)
    platform = build_platform(world.stack.settings)
    with platform.catalog.read() as session:
        stream = session.scalars(
            select(Object).where(Object.kind == ObjectKind.STREAM, Object.name == STREAM)
        ).one()
        roles = list(session.scalars(select(Role.id).where(Role.name.like("POLICED%"))))
        for law, asked in (("unique", unique(roles)), ("by Zipf's law", zipf(roles))):
            merged_view.cache_clear()
            decisions, merges = _served(session, stream, asked)
            both = [sum(pair) for pair in zip(decisions, merges, strict=True)]
            named = f"{len(both):,} requests, {law}"
            yield middle(f"{named}: the decision, with {POLICIES:,} policies", decisions, "ms")
            yield middle(f"{named}: the merge", merges, "ms")
            yield middle(f"{named}: decision and merge", both, "ms", REQUEST_MS)
    platform.catalog.close()


def unique(roles: list[int]) -> Iterator[int]:
    """The roles of requests that differ, as long as there are roles that did not ask yet."""
    order = random.Random(1).sample(roles, len(roles))
    return (order[number % len(order)] for number in range(REQUESTS))


def zipf(roles: list[int]) -> Iterator[int]:
    """The roles of requests of which few come often (002 §4.2)."""
    weights = [1 / rank**SKEW for rank in range(1, RANKS + 1)]
    return iter(random.Random(2).choices(roles[:RANKS], weights, k=REQUESTS))


def _served(
    session: Session, stream: Object, roles: Iterator[int]
) -> tuple[list[float], list[float]]:
    """The milliseconds of each decision, and of each merge."""
    relation = from_stored(Relation, session.get_one(StreamRow, stream.id).relation)
    plan = parse_sql(QUERY, _Streams(relation)).plan
    decisions, merges = [], []
    for role in roles:
        # Each request reads the policies anew.
        view, took = _timed(partial(RoleViews(session).of, [role], stream))
        decisions.append(took)
        viewed = {relation.object_id: ViewedStream(relation, view)}
        _, took = _timed(partial(through_views, plan, viewed))
        merges.append(took)
    return decisions, merges


class _Streams:
    def __init__(self, stream: Relation) -> None:
        self._stream = stream

    def relation(self, name: str) -> Relation:
        return self._stream


def _load(world: World, role: str) -> float:
    """How long it takes to load a policy of a new role."""
    world.admin.post("/roles", name=role)
    world.grant(role, "stream", STREAM, "READ TUPLE")
    condition = x.obligation("filtering", ("filter-condition", "n &gt; 5", "string"))
    inside = f"{x.rule()}<ObligationExpressions>{condition}</ObligationExpressions>"
    text = x.policy(inside, aim=x.role_target(role, STREAM), name=f"p{role}")
    return _timed(lambda: world.admin.post("/xacml-policies", xacml=text))[1]


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - started) * 1000
