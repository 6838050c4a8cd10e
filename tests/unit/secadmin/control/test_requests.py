"""The workload of paper 002 (section 4.2): matching requests, unique and by Zipf's law.

Policies and queries are the paper's XML, with random filters, maps and windows. Each answer is
compared with plain Python, which goes through the tuples and knows no plan.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.models import Object, PolicyRow
from catalog.relation import Relation, RelationKind
from catalog.role_views import RoleViews, merged_view
from catalog.schema import Attribute, Schema, Type
from catalog.stored_form import to_stored
from catalog.view_plan import ViewedStream, through_views
from secadmin.control.user_queries import user_query_sql
from secadmin.control.xacml_views import xacml_view
from secadmin.languages import parse_sql
from secadmin.xacml.role_policy import read_role_policy
from tests.lanes import number_of
from tests.oracle.plans import run
from tests.oracle.values import EPOCH, Tuple
from tests.unit.secadmin.control.place import Place
from tests.unit.secadmin.xacml import policy_texts as x

POLICIES = number_of("REQUEST_POLICIES", sample=60, long=1_000)
REQUESTS = number_of("REQUESTS", sample=100, long=1_500)
# The paper's skew, and the number of unique requests among which it chooses.
SKEW, RANKS = 0.223, 300
NAMES = ("temperature", "rainrate", "windspeed")
SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        *(Attribute(name, Type.BIGINT) for name in NAMES),
    )
)
LABEL = Label.of(0)
Row = tuple[datetime, int, int, int]
Rows = list[tuple[object, ...]]
_CHANCE = random.Random(9)
TUPLES: list[Row] = [
    (
        EPOCH + timedelta(seconds=second),
        _CHANCE.randrange(10),
        _CHANCE.randrange(10),
        _CHANCE.randrange(10),
    )
    for second in range(120)
]


@dataclass(frozen=True)
class Asked:
    """What a policy shows, or a query asks for: values above a limit, attributes, a window."""

    over: tuple[str, int] | None
    attributes: tuple[str, ...] | None
    window: tuple[int, int] | None
    # What the numbers of the window are: seconds, or tuples.
    unit: str = "time"

    @classmethod
    def random(cls, chance: random.Random, *, windows: bool) -> Asked:
        over = (chance.choice(NAMES), chance.randrange(8)) if chance.random() < 0.6 else None
        shown = tuple(sorted(chance.sample(NAMES, chance.randint(1, 3))))
        step = chance.choice((5, 10))
        window = (step * chance.choice((1, 2, 3)), step) if windows else None
        if over is None and window is None:
            return cls(None, shown, None)
        unit = chance.choice(("time", "tuple")) if windows else "time"
        return cls(over, shown if chance.random() < 0.7 else None, window, unit)

    def policy(self, name: str) -> str:
        """As XACML, for the role of that name."""
        parts = []
        if self.over is not None:
            text = f"{self.over[0]} &gt; {self.over[1]}"
            parts.append(x.obligation("filtering", ("filter-condition", text, "string")))
        if self.attributes is not None:
            shown = (("map-attribute", each, "string") for each in ("ts", *self.attributes))
            parts.append(x.obligation("mapping", *shown))
        if self.window is not None:
            functions = ["ts:lastval", *(f"{each}:avg" for each in NAMES)]
            parts.append(x.window(*self.window, *functions, kind=self.unit))
        inside = f"<ObligationExpressions>{''.join(parts)}</ObligationExpressions>"
        return x.policy(x.rule() + inside, aim=x.role_target(name, "in1"), name=name)

    def query(self) -> str:
        """As a UserQuery."""
        text = '<UserQuery><Stream name="in1"/>'
        if self.over is not None:
            name, limit = self.over
            text += f"<Filter><FilterCondition>{name} &gt; {limit}</FilterCondition></Filter>"
        if self.attributes is not None and self.window is None:
            listed = "".join(f"<Attribute>{each}</Attribute>" for each in self.attributes)
            text += f"<Map>{listed}</Map>"
        if self.window is not None:
            size, step = self.window
            listed = "".join(f"<Attribute>avg({each})</Attribute>" for each in self.aggregated)
            text += (
                f"<Aggregation><WindowType>{self.unit}</WindowType><WindowSize>{size}</WindowSize>"
                f"<WindowStep>{step}</WindowStep>{listed}</Aggregation>"
            )
        return f"{text}</UserQuery>"

    @property
    def aggregated(self) -> tuple[str, ...]:
        return self.attributes or NAMES

    def keeps(self, row: Row) -> bool:
        return self.over is None or _value(row, self.over[0]) > self.over[1]


def _value(row: Row, name: str) -> int:
    return {"temperature": row[1], "rainrate": row[2], "windspeed": row[3]}[name]


def _second(row: Row) -> float:
    return (row[0] - EPOCH).total_seconds()


def answer(policy: Asked, query: Asked) -> Rows | None:
    """What plain Python says that the query gets. None: it is refused."""
    shown = policy.attributes or NAMES
    wanted = query.aggregated if query.window else (query.attributes or shown)
    asked = {*wanted, *([query.over[0]] if query.over else [])}
    if not asked <= set(shown):
        return None
    rows = [row for row in TUPLES if policy.keeps(row) and query.keeps(row)]
    if policy.window is not None and not _fits(policy, query):
        return None
    if query.window is None:
        whole = query.attributes is None and policy.window is None
        return [
            (*([row[0]] if whole else []), *(_value(row, n) for n in _ordered(wanted)))
            for row in rows
        ]
    return _windows(rows, query)


def _fits(policy: Asked, query: Asked) -> bool:
    """A coarser window, and no condition on what may only be aggregated."""
    if query.window is None or query.over is not None or policy.window is None:
        return False
    if query.unit != policy.unit:
        return False
    return query.window[0] >= policy.window[0] and query.window[1] >= policy.window[1]


def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name in names)


def _windows(rows: list[Row], query: Asked) -> Rows:
    assert query.window is not None
    size, step = query.window
    found: Rows = []
    if query.unit == "tuple":
        for last in range(size, len(rows) + 1, step):
            inside = rows[last - size : last]
            values = ([_value(row, name) for row in inside] for name in _ordered(query.aggregated))
            found.append((inside[-1][0], *(sum(each) / size for each in values)))
        return found
    for start in range(-size + step, 120, step):
        inside = [row for row in rows if start <= _second(row) < start + size]
        if inside:
            at = EPOCH + timedelta(seconds=start)
            values = ([_value(row, name) for row in inside] for name in _ordered(query.aggregated))
            found.append((at, *(sum(each) / len(each) for each in values)))
    return found


@dataclass
class Server:
    """Policies in a catalog; each request asks by its policy's role."""

    place: Place
    stream: Object
    relation: Relation
    policies: list[Asked]

    def serve(self, number: int, query: Asked) -> Rows | None:
        """The results of the merged query. None: it is refused."""
        with self.place.catalog.read() as session:
            role = self.place.world.get_role(f"role{number}")
            view = RoleViews(session).of([role], self.stream)
        viewed = ViewedStream(self.relation, view)

        class Seen:
            def relation(self, name: str) -> Relation:
                assert name == "in1"
                return viewed.relation

        try:
            plan = parse_sql(user_query_sql(query.query(), Seen().relation), Seen()).plan
            merged = through_views(plan, {self.relation.object_id: viewed})
        except InvalidInput:
            return None
        table = [Tuple(row, LABEL) for row in TUPLES]
        return [tuple(each.values) for each in run(merged.root, {"in1": table}, lambda _: LABEL)]


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    chance = random.Random(2)
    stream = place.world.get_object("stream in1")
    relation = Relation(stream.id, "in1", RelationKind.STREAM, SCHEMA, "ts", 0)
    policies = [Asked.random(chance, windows=n % 3 == 0) for n in range(POLICIES)]
    for number, policy in enumerate(policies):
        found = read_role_policy(policy.policy(f"role{number}"))
        place.world.grant(found.role, "READ TUPLE", "stream in1")
        place.world.add(
            PolicyRow(
                stream_id=stream.id,
                role_id=place.world.get_role(found.role),
                name=found.name,
                view=to_stored(xacml_view(found.view, relation)),
            )
        )
    yield Server(place, stream, relation, policies)


def unique(chance: random.Random, policies: int) -> Iterator[int]:
    """Each request is another one, as long as there are policies that no request had."""
    order = chance.sample(range(policies), policies)
    return (order[number % policies] for number in range(REQUESTS))


def zipf(chance: random.Random, policies: int) -> Iterator[int]:
    """Few requests come often."""
    ranks = min(RANKS, policies)
    weights = [1 / rank**SKEW for rank in range(1, ranks + 1)]
    return iter(chance.choices(range(ranks), weights, k=REQUESTS))


@pytest.mark.parametrize("law", [unique, zipf])
def test_each_request_gets_what_its_policy_shows(
    server: Server, law: Callable[[random.Random, int], Iterator[int]]
) -> None:
    chance, served, refused = random.Random(4), 0, 0
    for number in law(chance, POLICIES):
        policy = server.policies[number]
        query = Asked.random(chance, windows=policy.window is not None or chance.random() < 0.3)
        wanted, got = answer(policy, query), server.serve(number, query)
        if wanted is None or got is None:
            assert wanted == got, (policy, query)
            refused += 1
            continue
        served += 1
        assert _rounded(got) == _rounded(wanted), (policy, query)
    assert min(served, refused) > REQUESTS // 10, "both occur"


def test_what_is_kept_is_never_older_than_the_policies(server: Server) -> None:
    """The paper's proxy keeps what it decided for requests that come often."""
    query = Asked(None, ("rainrate",), None)
    number = next(n for n, each in enumerate(server.policies) if answer(each, query))
    wanted = answer(server.policies[number], query)
    merged_view.cache_clear()
    assert _rounded(server.serve(number, query) or []) == _rounded(wanted or [])
    server.serve(number, query)
    assert (merged_view.cache_info().misses, merged_view.cache_info().hits) == (1, 1)
    stricter = Asked(("rainrate", 8), ("rainrate",), None)
    found = read_role_policy(stricter.policy(f"role{number}"))
    server.place.world.add(
        PolicyRow(
            stream_id=server.stream.id,
            role_id=server.place.world.get_role(found.role),
            name="stricter",
            view=to_stored(xacml_view(found.view, server.relation)),
        )
    )
    left = [row for row in wanted or [] if int(str(row[0])) > 8]
    assert 0 < len(left) < len(wanted or [])
    assert _rounded(server.serve(number, query) or []) == _rounded(left)


def _rounded(rows: Rows) -> list[str]:
    return sorted(
        str([round(v, 6) if isinstance(v, float) else v for v in values]) for values in rows
    )
