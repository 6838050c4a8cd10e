"""For how many tuples a second a plan counts: what the owners of its streams have declared."""

from __future__ import annotations

import pytest

from catalog.limits import Limits
from catalog.models import StreamRow
from catalog.plan import Source, Union
from catalog.rates import rate_of
from catalog.relation import Relation
from tests.plans import AnyPlan, whole
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import World

LIMITS = Limits(stream_rate=1000)


class Rated(Filled):
    """Streams with declared rates, and outputs over them."""

    def rated(self, name: str, bit: int, rate: int | None) -> Relation:
        made = self.stream(name, 1, bit)
        self.world.edit(StreamRow, made.object_id, rate=rate)
        return made

    def rate(self, plan: AnyPlan, limits: Limits = LIMITS) -> int:
        with self.world.catalog.read() as session:
            return rate_of(session, whole(plan), limits)


@pytest.fixture
def rated(world: World) -> Rated:
    return Rated(world)


def both(*relations: Relation) -> Union:
    """What reads all of them."""
    return Union(tuple(map(Source, relations)))


def test_a_stream_counts_for_what_its_owner_declared(rated: Rated) -> None:
    assert rated.rate(Source(rated.rated("fast", 0, 50_000))) == 50_000
    assert rated.rate(Source(rated.rated("slow", 1, 1))) == 1


def test_a_stream_without_a_declared_rate_counts_for_the_usual_one(rated: Rated) -> None:
    plain = Source(rated.rated("in1", 0, None))
    assert rated.rate(plain) == 1000
    assert rated.rate(plain, Limits(stream_rate=7)) == 7


def test_what_a_plan_reads_is_counted_together_and_as_often_as_it_is_read(rated: Rated) -> None:
    one, two = rated.rated("in1", 0, 30), rated.rated("in2", 1, None)
    assert rated.rate(both(one, two)) == 1030
    assert rated.rate(both(one, one, two)) == 1060


def test_an_output_counts_for_what_its_query_reads(rated: Rated) -> None:
    one, two = rated.rated("in1", 0, 30), rated.rated("in2", 1, 5)
    middle = rated.output("middle", both(one, one), "in1")
    top = rated.output("top", both(middle, two), "middle", "in2")
    assert rated.rate(Source(middle)) == 60
    assert rated.rate(Source(top)) == 65
    assert rated.rate(both(top, top, middle, one)) == 2 * 65 + 60 + 30


def test_a_new_rate_counts_behind_all_outputs(rated: Rated) -> None:
    one = rated.rated("in1", 0, None)
    middle = rated.output("middle", Source(one), "in1")
    top = rated.output("top", Source(middle), "middle")
    assert rated.rate(Source(top)) == 1000
    rated.world.edit(StreamRow, one.object_id, rate=2)
    assert rated.rate(Source(top)) == 2


def test_a_long_chain_is_looked_up_fast(rated: Rated) -> None:
    below = rated.rated("in1", 0, 1)
    for number in range(40):
        below = rated.output(f"o{number}", both(below, below), below.name)
    assert rated.rate(Source(below)) == 2**40
