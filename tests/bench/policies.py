"""Policies of roles (002 §4.2): loading one, and what a request costs where there are 1,000."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from sqlalchemy import select

from catalog.models import Object, Role, StreamRow
from catalog.permission import ObjectKind
from catalog.relation import Relation
from catalog.role_views import RoleViews
from catalog.stored_form import from_stored
from catalog.view_plan import ViewedStream, through_views
from secadmin.__main__ import build_platform
from secadmin.languages import parse_sql
from tests.bench.figure import Figure, middle
from tests.bench.world import World
from tests.unit.secadmin.xacml import policy_texts as x

POLICIES, REQUESTS = 1_000, 1_500
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
    chance = random.Random(1)
    decisions, merges = [], []
    with platform.catalog.read() as session:
        stream = session.scalars(
            select(Object).where(Object.kind == ObjectKind.STREAM, Object.name == STREAM)
        ).one()
        relation = from_stored(Relation, session.get_one(StreamRow, stream.id).relation)
        roles = list(session.scalars(select(Role.id).where(Role.name.like("POLICED%"))))
        plan = parse_sql(QUERY, _Streams(relation)).plan
        for role in (chance.choice(roles) for _ in range(REQUESTS)):
            # Nothing is kept from one request to the next.
            views = RoleViews(session)
            view, took = _timed(partial(views.of, [role], stream))
            decisions.append(took)
            viewed = {relation.object_id: ViewedStream(relation, view)}
            _, took = _timed(partial(through_views, plan, viewed))
            merges.append(took)
    platform.catalog.close()
    yield middle(f"a request: the decision, with {POLICIES} policies", decisions, "ms")
    yield middle("a request: the merge", merges, "ms")
    both = [sum(pair) for pair in zip(decisions, merges, strict=True)]
    yield middle("a request: decision and merge", both, "ms", REQUEST_MS)


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
