"""What a query says of the time of its outputs: nothing that is older comes behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.held_time import held_ms
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.pattern import Definition, PatternRepeat, PatternVariable, Reading
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Emission,
    Filter,
    JoinKind,
    Match,
    Moving,
    MovingWindow,
    Node,
    Project,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Type
from catalog.time_source import TimeSource
from catalog.topics import RESULT_ECHO_TOPIC
from secfilter.columns import ECHO
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.lab import HEADERS_TYPE, read_lab, tick_record
from secfilter.output_ticker import BatchProof, EchoProof, echo_column, echoes, ticked_topics
from secfilter.stream_time import Echo, echo_of
from secfilter.written import ByFlush
from tests.plans import AnyPlan, checked, grouped, updating, whole
from tests.unit.catalog.plans import call, ref
from tests.unit.secfilter.collected import BATCH
from tests.unit.secfilter.test_lateness import paired, relation
from tests.unit.secfilter.ticked import Entry, results_of

A = replace(relation("a", RelationKind.STREAM), time=TimeSource.BROKER)
BY_DATA = replace(A, time=TimeSource.DATA)
COUNT = (Aggregation("n", "count", None),)
LABEL, LIFE = Label.of(0), "ab" * 16
POSITIVE = Call(">", (AttributeRef("key"), Literal(0, Type.BIGINT)))

# Tuples of a stream and its ticks, in an order in which they may come: no tuple is older than a
# tick before it.
_A: list[Entry] = [
    *((3, 1), (12, 2), 2, (4, 1), (8, 3), (2, 4), 9, (17, 5), (9, 1), 13),
    *((25, 6), 21, (29, 7), (28, 7), 31, (33, 1), (40, 2), 36, (37, 1), 50, 60),
]
_B: list[Entry] = [
    *((5, 1), (3, 1), 3, (6, 1), 7, (9, 3), (11, 2), 10, (19, 5), (16, 5), 15),
    *((24, 6), 22, (29, 7), 30, (32, 1), (39, 2), 35, (38, 1), 51, 60),
]
_SECONDS = grouped(Source(A), Window(5_000, 5_000), (Column("key", ref("key")),), COUNT)
_ROWS = Aggregate(Moving(Source(A), MovingWindow(range_ms=4_000)), (), COUNT)
_PAIRS = replace(paired(TimeSource.BROKER), lower_ms=-4_000, upper_ms=2_000)
_WITH_STREAM = replace(
    _PAIRS, left=_SECONDS, equal=((AttributeRef("key"), AttributeRef("b_key")),), lower_ms=-5_000
)
PLANS: dict[str, AnyPlan] = {
    "windows": _SECONDS,
    "windows over pairs": grouped(_PAIRS, Window(5_000, 5_000), (), COUNT),
    "windows over pairs of windows": grouped(_WITH_STREAM, Window(10_000, 10_000), (), COUNT),
    "windows with a stream": _WITH_STREAM,
    "a stream with windows": replace(_WITH_STREAM, kind=JoinKind.RIGHT),
    "updates": updating(_SECONDS),
    "windows that overlap": grouped(Source(A), Window(10_000, 2_000), (), COUNT),
    "sessions": grouped(Source(A), SessionWindow(3_000), (), COUNT),
    "windows of windows": grouped(_SECONDS, Window(10_000, 10_000), (), COUNT),
    "changes of a moving window": ToStream(_ROWS, Change.ISTREAM),
    "what leaves a moving window": ToStream(_ROWS, Change.DSTREAM),
    "a pattern": Match(
        *(Source(A), (), ()),
        PatternRepeat(PatternVariable("a"), 1, 3),
        within_ms=6_000,
    ),
    "a pattern that reads a later row": Match(
        *(Source(A), ()),
        (Reading("behind", "last", None, ref("key"), moved=1),),
        PatternRepeat(PatternVariable("a"), 1, None),
        within_ms=4_000,
        definitions=(Definition("a", POSITIVE),),
    ),
    **{
        f"{kind} join, {lower} to {upper}": replace(
            paired(TimeSource.BROKER), kind=kind, lower_ms=lower, upper_ms=upper
        )
        for kind, lower, upper in (
            (JoinKind.INNER, -2_000, 3_000),
            (JoinKind.INNER, 2_000, 4_000),
            (JoinKind.LEFT, -2_000, 3_000),
            (JoinKind.LEFT, 1_000, 4_000),
            (JoinKind.RIGHT, -4_000, 1_000),
            (JoinKind.SEMI, -1_000, 2_000),
            (JoinKind.ANTI, -1_000, 2_000),
        )
    },
}


def claims(query: StreamingQuery, held: int) -> dict[int, int]:
    """Batch -> the time before which no result comes behind it, as a ticker would find it (ms)."""
    found = {}
    for each in query.recentProgress:
        progress = SimpleNamespace(
            durationMs=lambda each=each: SimpleNamespace(containsKey=each.durationMs.__contains__),
            eventTime=lambda each=each: each.eventTime,
            batchId=lambda each=each: each.batchId,
        )
        running = SimpleNamespace(_jsq=SimpleNamespace(lastProgress=lambda p=progress: p))
        said = BatchProof(cast("Any", running), held, turn_s=0).await_ms(cast("Any", None))
        if said is not None:
            found[each.batchId] = said
    return found


# The others are for the long lane: each takes some seconds.
_SAMPLE = {"what leaves a moving window"}


@pytest.mark.parametrize(
    "name",
    [n if n in _SAMPLE else pytest.param(n, marks=pytest.mark.long) for n in PLANS],
)
def test_no_result_is_older_than_what_a_batch_before_it_proves(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    plan = checked(PLANS[name])
    cut = {
        side: [entries[n : n + 2] for n in range(0, len(entries), 2)]
        for side, entries in (("a", _A), ("b", _B))
    }
    mode = "update" if plan.emission is Emission.UPDATES else "append"
    found, query = results_of(spark, tmp_path, plan, cut, mode)
    held = held_ms(plan.root)
    proven = claims(query, held)
    assert len(set(proven.values())) > 5
    assert max(proven.values()) >= 59_000 - held
    assert len({row[BATCH] for row in found}) > 1
    for row in found:
        assert plan.event_time is not None
        before = [said for batch, said in proven.items() if batch < row[BATCH]]
        assert row[plan.event_time] * 1_000 >= max(before, default=0)


def test_an_output_goes_by_ticks_if_all_that_it_reads_does() -> None:
    def time_of(*sources: Relation) -> tuple[TimeSource, bool]:
        plan = checked(Union(tuple(map(Source, sources))))
        output = output_relation(9, "o", plan)
        return output.time, output.by_ticks

    assert time_of(A, A) == (TimeSource.BROKER, True)
    assert time_of(A, BY_DATA) == (TimeSource.DATA, False)
    untimed = checked(Project(Source(A), (Column("key", ref("key")),)))
    assert not output_relation(9, "o", untimed).by_ticks


def run_of(node: Node, *, name: str = "query-1", labelled: bool = True) -> QueryRun:
    output = output_relation(9, "o", checked(node))
    own = FanOutClass("out.o.c", Clearance(LABEL.bits), id=1)
    fed = FedOutput(output, (own,), labelled)
    return QueryRun(name, whole(node), (fed,), LABEL, {}, reaches={1: LABEL, 2: LABEL})


PASSING = Filter(Source(A), POSITIVE)


@pytest.mark.parametrize(
    ("run", "topics", "echoed"),
    [
        (run_of(PASSING), ["lab.o"], True),
        (run_of(_SECONDS), ["lab.o"], False),
        (run_of(PASSING, labelled=False), [], False),
        (run_of(PASSING, name="query-1-side"), [], False),
        (run_of(Filter(Source(BY_DATA), POSITIVE)), [], False),
    ],
    ids=["stateless", "stateful", "unread", "a side run", "by data"],
)
def test_which_outputs_get_ticks(run: QueryRun, topics: list[str], echoed: bool) -> None:
    assert (ticked_topics(run), echoes(run)) == (topics, echoed)


def test_ticks_pass_a_plan_without_state_and_come_out_as_echoes(spark: SparkSession) -> None:
    both = Union(
        (
            Project(PASSING, (Column("at", ref("at")), Column("key", ref("key")))),
            Filter(Source(A), call("<", ref("key"), Literal(9, Type.BIGINT))),
        )
    )
    run, sources = run_of(both), iter(range(2))
    tick, value = tick_record(77_000)
    tuple_ = [("tuple-3", b"1")]
    rows = [
        (b"1:0:4", f"{second * 1_000_000}\x1f{key}".encode(), 3, 4 + key, tuple_)
        for second, key in ((5, 0), (6, 1), (7, 20))
    ]
    records = spark.createDataFrame(
        [*rows, (None, value, 3, 30, tick)],
        f"key binary, value binary, partition int, offset bigint, headers {HEADERS_TYPE}",
    )

    def source(relation: Relation) -> DataFrame:
        beside = {ECHO: echo_column(LIFE, next(sources))}
        return read_lab(records, relation, LABEL, beside=beside)

    compiled = compile_plan(checked(run.plan), source, run.reach_of, beside=[ECHO])
    sent = fan_out(compiled, run, "00", echoes=True)
    found = [(r["topic"], r["key"], r["value"], r["headers"]) for r in sent.collect()]
    echoed = [each for each in found if each[0] == RESULT_ECHO_TOPIC]
    assert {echo_of(value.encode()) for _, _, value, _ in echoed} == {
        Echo(LIFE, number, 3, 30, 77_000) for number in (0, 1)
    }
    assert {(key, headers) for _, key, _, headers in echoed} == {(None, None)}
    for topic in ("out.o.c", "lab.o"):
        assert len([each for each in found if each[0] == topic]) == 4


def _echoed(source: int, partition: int, time_s: int, life: str = LIFE) -> bytes:
    return f"{life}:{source}:{partition}:{time_s}:{time_s * 1_000}".encode()


class Heard:
    """A consumer of echoes."""

    def __init__(self, *values: bytes) -> None:
        self._values = list(values)

    def poll(self, _wait_s: float) -> Any:
        return self._message(self._values.pop(0)) if self._values else None

    def consume(self, _count: int, _wait_s: float) -> list[Any]:
        found, self._values = list(map(self._message, self._values)), []
        return found

    @staticmethod
    def _message(value: bytes) -> Any:
        return SimpleNamespace(value=lambda: value, error=lambda: None)


@pytest.mark.parametrize(
    ("echoed", "proven"),
    [
        ([], None),
        ([_echoed(0, 0, 5), _echoed(0, 1, 7)], None),
        ([_echoed(0, 0, 5), _echoed(0, 1, 7), _echoed(1, 0, 6)], 5_000),
        ([_echoed(0, 0, 5), _echoed(0, 1, 7), _echoed(1, 0, 6), _echoed(0, 0, 8)], 6_000),
        ([_echoed(0, 0, 5), _echoed(0, 1, 7), _echoed(1, 0, 6, "cd" * 16)], None),
    ],
)
def test_the_slowest_partition_of_all_sources_holds_the_time(
    echoed: list[bytes], proven: int | None
) -> None:
    proof = EchoProof(LIFE, ((0, 0), (0, 1), (1, 0)), ByFlush(lambda: False))
    assert proof.await_ms(cast("Any", Heard(*echoed))) == proven
    assert not proof.holds()
