"""How long batches last, and the options that say so."""

from dataclasses import replace

import pytest

from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FedOutput, IngestRun, QueryRun, Run
from catalog.schema import Attribute, Schema, Type
from secfilter.pace import ON_CLUSTER, Pace, pace_of
from tests.plans import whole


def test_options_of_ours_make_the_pace_and_sparks_do_not() -> None:
    options = {"secfilter.query_ms": "500", "spark.driver.memory": "1g"}
    assert pace_of(options) == Pace(query_ms=500)
    assert pace_of({}) == Pace()
    assert pace_of(options, ON_CLUSTER) == replace(ON_CLUSTER, query_ms=500)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"secfilter.query": "500"}, "there is no option 'secfilter.query'; there are"),
        ({"secfilter.": "500"}, "there is no option 'secfilter.'"),
        ({"secfilter.query_ms": "5 s"}, "is '5 s', and not a whole number"),
        ({"secfilter.query_ms": "-1"}, "not a whole number"),
        ({"secfilter.query_ms": ""}, "not a whole number"),
        ({"secfilter.ingest_ms": "٣"}, "not a whole number"),
    ],
)
def test_other_options_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        pace_of(options)
    assert said in refusal.value.detail


def run_of(kind: str, number: int) -> Run:
    if kind == "ingest":
        return IngestRun(f"ingest-{number}", ())
    schema = Schema((Attribute("a", Type.STRING),))
    stream = Relation(1, "s", RelationKind.STREAM, schema, None, 0)
    return QueryRun(f"query-{number}", whole(Source(stream)), (FedOutput(stream),), Label.of(0), {})


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("kind", ["query", "ingest"])
def test_batches_are_never_shorter_and_differ_from_run_to_run(kind: str, settled: bool) -> None:
    pace = Pace(query_ms=2_000, ingest_ms=3_000, new_ms=1_000)
    lengths = {pace.real_time_ms(run_of(kind, number), settled=settled) for number in range(50)}
    shortest = {"ingest": 3_000, "query": 2_000}[kind] if settled else 1_000
    assert min(lengths) >= shortest and max(lengths) <= shortest * 5 // 4
    assert len(lengths) > 10
    assert pace.patience_s > max(lengths) / 1000, "a stop waits for the end of any batch"


def test_only_what_gets_longer_batches_lengthens() -> None:
    pace = Pace(query_ms=500, ingest_ms=2_000, new_ms=1_000)
    query, ingest = run_of("query", 1), run_of("ingest", 1)
    assert not pace.lengthens(query) and pace.lengthens(ingest)
    lengths = [pace.real_time_ms(query, settled=settled) for settled in (False, True)]
    assert lengths[0] == lengths[1] >= 500


def test_not_all_runs_settle_at_once() -> None:
    pace = Pace(settle_ms=1_000)
    times = {pace.settle_s(f"query-{number}") for number in range(50)}
    assert min(times) >= 1.0 and max(times) <= 1.25 and len(times) > 10


def test_side_runs_of_ingest_are_waited_for_and_others_are_not() -> None:
    pace = Pace()
    assert pace.beside_ms(run_of("ingest", 1)) < 1_000 < pace.beside_ms(run_of("query", 1))
