"""The measurements still name what they measure: they run rarely, and their names would age."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from catalog.plan import Source, is_stateful, walk
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from deploy.bench import options_of
from deploy.errors import DeployError
from secadmin.languages import parse_borealis, parse_sql
from tests.bench import nexmark, planning
from tests.bench.bids import json_bid, labelled_bids
from tests.bench.figure import Figure
from tests.bench.kept import keep, last_figures
from tests.bench.plain_nexmark import PLAIN
from tests.bench.query_setup import ADDING, SUBSCRIBING
from tests.differential.named_streams import NamedStreams
from tests.differential.wire import decode
from tests.nexmark import STREAMS


@pytest.mark.parametrize("part", [*ADDING, *SUBSCRIBING])
def test_what_the_stopwatch_times_exists(part: str) -> None:
    for owner, name in {**ADDING, **SUBSCRIBING}[part]:
        assert callable(getattr(owner, name)), f"{owner.__name__}.{name}"


def test_the_planned_queries_have_as_many_operators_as_the_figures_say() -> None:
    kinds = {"ts": Type.TIMESTAMP, "n": Type.BIGINT, "sent": Type.BIGINT}
    schema = Schema(tuple(Attribute(name, kind, required=True) for name, kind in kinds.items()))
    streams = NamedStreams(
        {
            name: Relation(number, name, RelationKind.STREAM, schema, "ts", 0)
            for number, name in enumerate(planning.STREAMS)
        }
    )
    query = parse_sql(planning.SQL, streams).plan
    ((_, diagram),) = parse_borealis(planning.diagram_of(planning.BOXES), streams).outputs
    for plan, boxes in ((query, planning.OPERATORS), (diagram.plan, planning.BOXES)):
        own = [each for each in walk(plan.root) if not isinstance(each, Source)]
        assert len(own) >= boxes


@pytest.mark.parametrize("name", nexmark.LEAST)
def test_a_query_of_nexmark_has_a_plain_one_and_the_target_of_its_kind(name: str) -> None:
    assert name in PLAIN
    kept = is_stateful(nexmark.run_of(name).plan)
    assert nexmark.LEAST[name] == (0.90 if kept else 0.95)


def test_bids_are_as_the_stream_has_them_in_the_order_of_time() -> None:
    schema = STREAMS["bid"].schema
    made = [*labelled_bids(200)]
    assert made == [*labelled_bids(200)]
    times = [decode(each.value.decode(), schema)[5] for each in made]
    assert times == sorted(times, key=str)
    assert {schema.names[5]} == {STREAMS["bid"].event_time}
    assert len({each.key for each in made}) == len(made)


def test_a_bid_in_json_is_the_labelled_one() -> None:
    schema = STREAMS["bid"].schema
    for each in labelled_bids(20):
        values = json.loads(json_bid(each.value))
        values["date_time"] = datetime.fromisoformat(values["date_time"]).replace(tzinfo=None)
        assert tuple(values) == schema.names
        assert tuple(values.values()) == decode(each.value.decode(), schema)


def test_what_a_measurement_gave_is_kept_until_it_measures_again(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert last_figures(file) == {}
    first, second = Figure("delay", 1.5, "ms", 2.0), Figure("cost", 0.25, "cores")
    keep("latency", [first], file)
    keep("cost", [second], file)
    keep("latency", [first, second], file)
    kept = last_figures(file)
    assert kept["latency"].figures == (first, second)
    assert kept["cost"].figures == (second,)
    assert kept["cost"].count_s > 0
    assert datetime.fromisoformat(kept["cost"].ended).tzinfo is not None


def test_a_measurement_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        DeployError, match="no measurement 'latencies': choose among latency, kafka"
    ):
        options_of(["--only", "kafka", "--only", "latencies"])
    assert options_of(["--only", "kafka"]).only == ["kafka"]
