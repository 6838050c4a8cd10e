"""What should run, read from the tables."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from catalog.clearance import Clearance
from catalog.clock import epoch_ms
from catalog.delivery import Delivery
from catalog.engines import FIRST
from catalog.independent_senders import count_user
from catalog.label import PUBLIC, Label
from catalog.models import (
    CategoryRow,
    DeliveryClass,
    Object,
    OutputInput,
    OutputRow,
    QueryRow,
    RunStatus,
    SenderRow,
    StreamRow,
    TopicFault,
    Withdrawal,
)
from catalog.plan import Aggregate, Enough, Source, Union, Windowed, at_sources
from catalog.record_format import RecordFormat, TimeFormat
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, QueryRun, Run, RunReport, fingerprint
from catalog.schema import Attribute, Schema, Type
from catalog.sender_state import SenderState, unfinished
from catalog.store import Catalog
from catalog.stored_form import to_stored
from catalog.wanted import (
    fed_classes,
    forget_runs,
    is_in_step,
    report_applied,
    report_faults,
    report_status,
    used_topics,
    wanted_runs,
)
from tests.outputs import alone
from tests.plans import AnyPlan, whole
from tests.unit.catalog.plans import COUNT, MINUTE, relation
from tests.unit.catalog.test_plan_flow import DECLARED, FITS
from tests.unit.catalog.world import START, World

SCHEMA = Schema((Attribute("price", Type.DOUBLE),))
IN1 = Relation(2, "in1", RelationKind.STREAM, SCHEMA, None, 0)


class Filled:
    """Streams and outputs with their rows, by names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.schema = world.object("schema s").id
        self.relations: dict[str, Relation] = {}
        self.senders: dict[str, SenderRow] = {}

    def stream(self, name: str, group: int, *bits: int, public: bool = False) -> Relation:
        made = self.world.stream(name, *bits)
        relation = replace(IN1, object_id=made.id, name=name, public=public)
        row = StreamRow(
            object_id=made.id,
            schema_id=self.schema,
            relation=to_stored(relation),
            record_format=to_stored(RecordFormat(times=TimeFormat.EPOCH_MS)),
            max_ahead_ms=60_000,
            max_bytes=10_000,
            partitions=1,
            shared=False,
            ingest_group=group,
        )
        self.world.add(row)
        self.sender(name)
        self.relations[name] = relation
        return relation

    def sender(self, name: str, **values: Any) -> SenderRow:
        """A sender of the stream that ingest reads, unless the values say otherwise."""
        stream = self.world.get_object(f"stream {name}").id
        number = len(self.senders) + 1
        made = {"state": SenderState.ACTIVE, "opened_at": START, **values}
        row = SenderRow(stream_id=stream, topic=f"in.{name}.{number}", **made)
        self.world.add(row)
        self.senders[f"in.{name}.{number}"] = row
        return row

    def output(self, name: str, plan: AnyPlan, *reads: str, running: bool = True) -> Relation:
        query = self.world.object(f"query {name}-query")
        self.world.add(QueryRow(object_id=query.id, language="sql", text="", running=running))
        made = self.world.object(f"output {name}")
        relation = replace(IN1, object_id=made.id, name=name, kind=RelationKind.OUTPUT)
        begins = {"lab.in1": {"0": 7}}
        self.world.add(alone(made.id, whole(plan), starting_offsets=begins))
        self.world.add(
            OutputRow(
                object_id=made.id,
                query_id=query.id,
                relation=to_stored(relation),
                plan=to_stored(whole(plan)),
                starting_offsets=begins,
                execution_id=made.id,
                retention_ms=1,
            )
        )
        for read in reads:
            source = self.relations[read].object_id
            self.world.add(OutputInput(output_id=made.id, relation_id=source))
        self.relations[name] = relation
        return relation

    def delivery(self, output: str, name: str, clearance: str, **values: Any) -> DeliveryClass:
        row = DeliveryClass(
            output_id=self.relations[output].object_id,
            name=name,
            topic=f"out.{output}.{name}",
            clearance=clearance,
            **{"weak": False, "opened_at": START, **values},
        )
        made: DeliveryClass = self.world.add(row)
        return made

    def runs(self) -> dict[str, Run]:
        with self.world.catalog.read() as session:
            return {run.name: run for run in wanted_runs(session)}

    def query(self, output: str) -> QueryRun:
        run = self.runs()[f"query-{self.relations[output].object_id}"]
        assert isinstance(run, QueryRun)
        return run

    def remove(self, what: str) -> None:
        self.world.edit(Object, self.world.get_object(what).id, removed_at=START)


@pytest.fixture
def filled(world: World) -> Filled:
    """Two streams in one group, one in another; an output over one of them."""
    filled = Filled(world)
    in1 = filled.stream("in1", 1, 0, 1)
    filled.stream("in2", 1, 70)
    filled.stream("in3", 2, 3)
    filled.output("out1", Source(in1), "in1")
    return filled


def test_nothing_runs_in_an_empty_catalog(world: World) -> None:
    assert Filled(world).runs() == {}


def test_streams_are_grouped(filled: Filled) -> None:
    runs = filled.runs()
    first, second = runs["ingest-1"], runs["ingest-2"]
    assert isinstance(first, IngestRun)
    assert isinstance(second, IngestRun)
    assert [(s.relation.name, s.label) for s in first.streams] == [
        ("in1", Label.of(0)),
        ("in2", Label.of(70)),
    ]
    assert [s.relation for s in second.streams] == [filled.relations["in3"]]
    assert (first.streams[0].max_ahead_ms, first.streams[0].max_bytes) == (60_000, 10_000)
    assert first.streams[0].record_format == RecordFormat(times=TimeFormat.EPOCH_MS)


def test_a_public_stream_alone_gets_the_public_label(filled: Filled) -> None:
    filled.stream("open", 3, public=True)
    filled.stream("nothing", 4)
    runs = filled.runs()
    run = runs["ingest-3"]
    assert isinstance(run, IngestRun)
    assert run.streams[0].label == PUBLIC
    # A stream without its category would be public by accident.
    assert "ingest-4" not in runs


def test_a_removed_stream_is_not_ingested(filled: Filled) -> None:
    filled.remove("stream in3")
    assert "ingest-2" not in filled.runs()


def test_an_output_is_a_run(filled: Filled) -> None:
    run = filled.query("out1")
    assert run.plan.root == Source(filled.relations["in1"])
    assert run.output == filled.relations["out1"]
    assert (run.classes, run.labelled) == ((), False)
    assert run.sources == Label.of(0)
    assert run.starting_offsets == {"lab.in1": {"0": 7}}


@pytest.mark.parametrize("gone", ["query out1-query", "output out1"])
def test_a_removed_query_does_not_run(filled: Filled, gone: str) -> None:
    filled.remove(gone)
    assert set(filled.runs()) == {"ingest-1", "ingest-2"}


def test_a_stopped_query_does_not_run(filled: Filled) -> None:
    filled.output("out2", Source(filled.relations["in1"]), "in1", running=False)
    assert set(filled.runs()) == {"ingest-1", "ingest-2", filled.query("out1").name}


def test_only_open_classes_are_fed(filled: Filled) -> None:
    filled.delivery("out1", "open", Label.of(0).to_wire(), weak=True)
    filled.delivery("out1", "not-yet", Label.of(0).to_wire(), opened_at=None)
    filled.delivery("out1", "closed", Label.of(0).to_wire(), closed_at=START)
    (fed,) = filled.query("out1").classes
    assert (fed.topic, fed.clearance, fed.weak) == ("out.out1.open", Clearance.of(0), True)


@pytest.mark.parametrize("beyond", [None, Label.of(1).to_wire()])
def test_a_class_begins_where_its_topic_was_made(filled: Filled, beyond: str | None) -> None:
    at = {"lab.in1": {"0": 9}}
    filled.delivery("out1", "open", Label.of(0).to_wire(), beyond=beyond, starting_offsets=at)
    (fed,) = filled.query("out1").classes
    assert (fed.begins, fed.made_ms) == (at, epoch_ms(START))


def test_where_a_class_begins_restarts_no_run(filled: Filled) -> None:
    row = filled.delivery("out1", "open", Label.of(0).to_wire())
    before = filled.query("out1")
    filled.world.edit(DeliveryClass, row.id, starting_offsets={"lab.in1": {"0": 9}})
    after = filled.query("out1")
    assert after.classes[0].begins and not before.classes[0].begins
    assert after == before and fingerprint(after) == fingerprint(before)


@pytest.mark.parametrize("clearance", ["0", Label.of(500).to_wire(), "", "garbage"])
def test_a_class_that_can_hold_nothing_is_left_out(filled: Filled, clearance: str) -> None:
    filled.delivery("out1", "none", clearance)
    assert filled.query("out1").classes == ()


@pytest.mark.parametrize("beyond", [Label.of(0, 500).to_wire(), "", "garbage"])
def test_a_difference_that_can_hold_nothing_is_left_out(filled: Filled, beyond: str) -> None:
    filled.delivery("out1", "none", Label.of(0).to_wire(), beyond=beyond)
    assert filled.query("out1").classes == ()


def test_a_difference_is_beyond_what_it_says_within_the_reach(filled: Filled) -> None:
    filled.delivery("out1", "more", Label.of(0, 500).to_wire(), beyond=Label.of(500).to_wire())
    (found,) = filled.query("out1").classes
    assert found.delivery == Delivery(Clearance.of(0), beyond=Clearance())


def test_fed_are_the_classes_of_a_run_that_is_as_it_is_wanted(filled: Filled) -> None:
    row = filled.delivery("out1", "one", Label.of(0).to_wire())
    run = filled.query("out1")

    def fed(state: str, mark: str, living: tuple[str, ...] = (FIRST,)) -> frozenset[int]:
        with filled.world.catalog.bookkeeping() as session:
            report_status(session, RunReport(run.name, state, "", mark), START)
        with filled.world.catalog.read() as session:
            return fed_classes(session, [row.id, row.id + 1], living)

    assert fed("starting", fingerprint(run)) == frozenset()
    assert fed("running", "another run") == frozenset()
    assert fed("running", fingerprint(run)) == {row.id}
    assert fed("running", fingerprint(run), ()) == frozenset(), "its engine is dead"
    filled.delivery("out1", "two", Label.of(0).to_wire(), beyond="0")
    assert fed("running", fingerprint(run)) == frozenset(), "it is about to be restarted"


def test_a_class_without_categories_is_fed_from_a_public_output(filled: Filled) -> None:
    row = filled.relations["out1"]
    filled.world.edit(OutputRow, row.object_id, relation=to_stored(replace(row, public=True)))
    filled.delivery("out1", "public", "0")
    assert [cls.topic for cls in filled.query("out1").classes] == ["out.out1.public"]


def test_an_output_that_is_read_is_labelled(filled: Filled) -> None:
    out1 = filled.relations["out1"]
    filled.output("out2", Source(out1), "out1", running=False)
    assert filled.query("out1").labelled
    filled.remove("output out2")
    assert not filled.query("out1").labelled


def test_sources_are_those_in_reach(filled: Filled) -> None:
    both = Union((Source(filled.relations["in1"]), Source(filled.relations["in2"])))
    filled.output("out2", both, "in1", "in2")
    assert filled.query("out2").sources == Label.of(0, 70)
    before = filled.query("out1")
    assert before.registered == 71
    filled.stream("in8", 9, 9)
    assert filled.query("out1") == before
    filled.stream("in9", 9, 99)
    after = filled.query("out1")
    assert after.registered == 100
    assert fingerprint(after) == fingerprint(before), "it runs on"


def test_a_category_that_a_stream_gets_later_is_in_reach_of_all_that_reads_it(
    filled: Filled,
) -> None:
    filled.output("out2", Source(filled.relations["out1"]), "out1")
    filled.delivery("out2", "open", Label.of(0, 99).to_wire())
    before = filled.query("out2")
    assert before.reaches == {filled.relations["out1"].object_id: Label.of(0)}
    assert [fed.clearance for fed in before.classes] == [Clearance.of(0)]
    stream = filled.relations["in1"].object_id
    filled.world.add(CategoryRow(bit=99, kind="source", stream_id=stream))
    after = filled.query("out2")
    assert after.plan == before.plan
    assert after.reaches == {filled.relations["out1"].object_id: Label.of(0, 99)}
    assert [fed.clearance for fed in after.classes] == [Clearance.of(0, 99)]
    assert fingerprint(after) != fingerprint(before)


def test_a_query_with_a_minimum_of_senders_knows_the_independent_ones(
    filled: Filled,
) -> None:
    stream = filled.relations["in1"].object_id
    declared = replace(relation(declared=DECLARED), object_id=stream, name="in1")
    filled.output("out2", at_sources(whole(FITS), lambda _: Source(declared)), "in1")
    plain = Windowed(Source(replace(declared, declared=None)), MINUTE)
    filled.output("out3", Aggregate(plain, (), (COUNT,), Enough(2)), "in1")
    user = filled.world.user("al").id
    sender = filled.sender("in1", user_id=user)
    before, ordinary = filled.query("out2"), filled.query("out1")
    assert before.numbers_of(declared) == filled.query("out3").numbers_of(declared) == {}
    with filled.world.catalog.change("test") as change:
        count_user(change.session, stream, user)
        change.audit("mark", "test")
    after = filled.query("out2")
    assert after.numbers_of(declared) == filled.query("out3").numbers_of(declared) == {sender.id: 0}
    assert fingerprint(after) != fingerprint(before)
    assert filled.query("out1") == ordinary, "only what has a minimum of senders counts them"


def test_a_stream_without_a_category_has_an_empty_reach(filled: Filled) -> None:
    nothing = filled.stream("nothing", 4)
    filled.output("out2", Source(nothing), "nothing")
    filled.delivery("out2", "open", Label.of(0).to_wire())
    run = filled.query("out2")
    assert (run.reach_of(nothing), run.reach_of(filled.relations["in1"])) == (PUBLIC, PUBLIC)
    assert run.classes == ()


def test_a_run_whose_fence_is_unproven_stands_still(filled: Filled) -> None:
    filled.delivery("out1", "open", Label.of(0).to_wire())
    row = Withdrawal(principal="p", topic="out.out1.open", decided_at=START, unproven=True)
    withdrawal = filled.world.add(row)
    name = f"query-{filled.relations['out1'].object_id}"
    assert name not in filled.runs()
    filled.world.edit(Withdrawal, withdrawal.id, done_at=START)
    assert name in filled.runs()


def test_a_status_is_written_over(filled: Filled, catalog: Catalog) -> None:
    for state in ("starting", "running"):
        with catalog.bookkeeping() as session:
            report = RunReport("query-9", state, "m\0" + "x" * 5_000, "f" * 64)
            report_status(session, report, START)
    with catalog.read() as session:
        status = session.get(RunStatus, "query-9")
        assert status is not None
        assert (status.state, len(status.message)) == ("running", 1_999)


def test_counts_add_up_and_a_state_has_its_beginning(catalog: Catalog) -> None:
    for later, state, counted in ((0, "running", {"late": 2}), (5, "running", {"late": 3})):
        with catalog.bookkeeping() as session:
            report = RunReport("query-9", state, counted=counted)
            report_status(session, report, START + timedelta(seconds=later))
    with catalog.read() as session:
        status = session.get_one(RunStatus, "query-9")
        assert (status.counts, status.since) == ({"late": 5}, START)
    with catalog.bookkeeping() as session:
        report_status(session, RunReport("query-9", "failed"), START + timedelta(seconds=9))
    with catalog.read() as session:
        status = session.get_one(RunStatus, "query-9")
        assert (status.counts, status.since) == ({"late": 5}, START + timedelta(seconds=9))


def test_a_runner_that_begins_takes_back_what_another_one_said(catalog: Catalog) -> None:
    with catalog.bookkeeping() as session:
        report = RunReport("query-9", "running", topics=frozenset({"lab.a"}))
        report_status(session, report, START)
        report_applied(session, FIRST, 0)
    with catalog.read() as session:
        assert is_in_step(session) and used_topics(session) == {"lab.a"}
    with catalog.bookkeeping() as session:
        forget_runs(session, FIRST)
    with catalog.read() as session:
        assert not is_in_step(session) and used_topics(session) == frozenset()


def test_a_fault_keeps_its_beginning_and_goes_when_it_is_over(catalog: Catalog) -> None:
    for later, faults in ((0, {"in.a": "gone", "in.b": "gone"}), (5, {"in.a": "anew"})):
        with catalog.bookkeeping() as session:
            report_faults(session, FIRST, faults, START + timedelta(seconds=later))
    with catalog.read() as session:
        (fault,) = session.query(TopicFault)
        assert (fault.topic, fault.reason, fault.since) == ("in.a", "anew", START)


def test_time_waits_for_all_senders_that_are_not_gone(filled: Filled) -> None:
    """Also for one without a topic so far, which may be written before ingest reads it."""
    own = filled.senders["in.in1.1"]
    new = filled.sender("in1", opened_at=None)
    old = filled.sender("in1", state=SenderState.DRAINING)
    filled.sender("in1", state=SenderState.GONE)
    streams = [filled.relations[name].object_id for name in ("in1", "in2")]
    with filled.world.catalog.read() as session:
        found = unfinished(session, streams)
    assert found == {
        streams[0]: {own.id, new.id, old.id},
        streams[1]: {filled.senders["in.in2.2"].id},
    }
