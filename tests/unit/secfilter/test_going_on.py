"""Where a run goes on: at its checkpoint, or at what is left of its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from catalog.label import Label
from catalog.plan import Aggregation, Source, Window
from catalog.relation import Relation, RelationKind
from catalog.runs import FedOutput, IngestRun, IngestStream, QueryRun, Run
from catalog.schema import Attribute, Schema, Type
from secfilter.after_commit import Drains
from secfilter.checkpoint import Checkpoints
from secfilter.going_on import shape_of
from secfilter.kafka_options import EARLIEST, KafkaOptions, Offsets
from secfilter.positions import Positions
from secfilter.queries import Engine
from tests.plans import grouped, whole
from tests.senders import sent

_SCHEMA = Schema((Attribute("a", Type.STRING),))
_TIMED = Relation(
    *(1, "t", RelationKind.STREAM, Schema((Attribute("at", Type.TIMESTAMP, True),)), "at", 0)
)
_COUNT = Aggregation("n", "count", None)


@dataclass
class Kept(Positions):
    """Topics of one partition each; from where on they hold records."""

    begins: Mapping[str, int] = field(default_factory=dict)

    def starting(self, topics: Sequence[str], known: Offsets) -> Offsets:
        return {topic: {"0": self._start(topic, known)} for topic in topics}

    def lost(self, known: Offsets) -> int:
        return sum(max(0, self.begins.get(t, 0) - parts["0"]) for t, parts in known.items())

    def _start(self, topic: str, known: Offsets) -> int:
        offset = known.get(topic, {}).get("0", EARLIEST)
        return offset if offset >= self.begins.get(topic, 0) else EARLIEST


def engine_over(folder: Path, begins: Mapping[str, int]) -> Engine:
    return Engine(cast(Any, None), KafkaOptions({}), Kept(begins), Checkpoints(folder), "")


def stream(name: str, number: int = 1) -> Relation:
    return Relation(number, name, RelationKind.STREAM, _SCHEMA, None, 0)


def ingest(*relations: Relation) -> IngestRun:
    return IngestRun("run", tuple(sent(IngestStream(r, Label.of(0), 1, 1)) for r in relations))


def query(relation: Relation, starting: Offsets, *categories: int) -> QueryRun:
    reaches = {relation.object_id: Label.of(0, *categories)}
    plan = whole(Source(relation))
    return QueryRun("run", plan, (FedOutput(relation),), Label.of(0), starting, reaches)


RUNS: dict[str, tuple[Run, str]] = {
    "ingest": (ingest(stream("s")), "in.s"),
    "query": (query(stream("s"), {}), "lab.s"),
}


def come_to(folder: Path, run: Run, offsets: Offsets) -> None:
    """Let the run have read so far."""
    made, _ = engine_over(folder, {})._checkpoint(run)
    for log, text in (("offsets", f"v1\n{{}}\n{_json(offsets)}"), ("commits", "v1\n{}")):
        (made.spark / log).mkdir(parents=True)
        (made.spark / log / "0").write_text(text)


def _json(offsets: Offsets) -> str:
    return str(offsets).replace("'", '"')


@pytest.mark.parametrize(("run", "topic"), RUNS.values(), ids=RUNS.keys())
def test_what_is_still_there_is_gone_on_with(tmp_path: Path, run: Run, topic: str) -> None:
    come_to(tmp_path, run, {topic: {"0": 5}})
    checkpoint, lost = engine_over(tmp_path, {topic: 5})._checkpoint(run)
    assert (checkpoint.committed(), checkpoint.folder.name, lost) == ({topic: {"0": 5}}, "1", 0)


@pytest.mark.parametrize(("run", "topic"), RUNS.values(), ids=RUNS.keys())
def test_what_retention_took_is_passed_over_and_counted(
    tmp_path: Path, run: Run, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    come_to(tmp_path, run, {topic: {"0": 5}})
    engine = engine_over(tmp_path, {topic: 7})
    checkpoint, lost = engine._checkpoint(run)
    assert (checkpoint.committed(), lost) == ({topic: {"0": EARLIEST}}, 2)
    assert "run: 2 lost to retention" in caplog.text


def test_new_categories_cost_no_state_while_there_are_free_bits(tmp_path: Path) -> None:
    """Wherever they are. Those that were there keep their bits."""
    come_to(tmp_path, query(stream("s"), {}), {"lab.s": {"0": 5}})
    for categories in [(640,), (640, 63), (640, 63, 3, *range(1000, 1060)), ()]:
        more = query(stream("s"), {}, *categories)
        checkpoint, lost = engine_over(tmp_path, {})._checkpoint(more)
        assert (checkpoint.committed(), lost) == ({"lab.s": {"0": 5}}, 0)
        assert checkpoint.folder.name == "1" and not checkpoint.anew
    assert checkpoint.layout().categories == (0, 640, 63, 3, *range(1000, 1060))
    assert checkpoint.layout().words == 1


@pytest.mark.parametrize("stateful", [True, False])
def test_without_free_bits_the_state_begins_anew_at_the_same_offsets(
    tmp_path: Path, stateful: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def run(*categories: int) -> QueryRun:
        plan = whole(grouped(Source(_TIMED), Window(1000, 1000), (), (_COUNT,)))
        made = query(_TIMED, {}, *categories)
        return replace(made, plan=plan) if stateful else made

    come_to(tmp_path, run(), {"lab.t": {"0": 5}})
    checkpoint, lost = engine_over(tmp_path, {})._checkpoint(run(*range(100, 164)))
    assert (checkpoint.committed(), checkpoint.folder.name, lost) == ({"lab.t": {"0": 5}}, "2", 0)
    assert (checkpoint.layout().words, checkpoint.anew) == (2, stateful)
    assert "run: labels need more words than its state has" in caplog.text
    again, _ = engine_over(tmp_path, {})._checkpoint(run(*range(100, 164)))
    assert (again.folder.name, again.anew) == ("2", False), "it is said once"


def test_a_layout_that_cannot_be_read_is_never_guessed(tmp_path: Path) -> None:
    come_to(tmp_path, query(stream("s"), {}), {"lab.s": {"0": 5}})
    checkpoint, _ = engine_over(tmp_path, {})._checkpoint(query(stream("s"), {}))
    for text in ('{"version": 99, "value": {}}', '{"version": 3, "value": 1}', "{}", "x"):
        (checkpoint.folder / "layout.json").write_text(text)
        with pytest.raises(ValueError):
            engine_over(tmp_path, {})._checkpoint(query(stream("s"), {}))


def test_a_query_that_starts_too_late_says_so(tmp_path: Path) -> None:
    run = query(stream("s"), {"lab.s": {"0": 3}})
    assert engine_over(tmp_path, {"lab.s": 4})._checkpoint(run)[1] == 1
    assert engine_over(tmp_path / "other", {"lab.s": 3})._checkpoint(run)[1] == 0


def test_other_streams_of_the_group_go_on_where_they_were(tmp_path: Path) -> None:
    both = ingest(stream("s"), stream("t", 2))
    come_to(tmp_path, both, {"in.s": {"0": 5}, "in.t": {"0": 9}})
    checkpoint, _ = engine_over(tmp_path, {"in.s": 6})._checkpoint(both)
    assert checkpoint.committed() == {"in.s": {"0": EARLIEST}, "in.t": {"0": 9}}
    alone = ingest(stream("t", 2))
    checkpoint, lost = engine_over(tmp_path, {"in.s": 99})._checkpoint(alone)
    assert (checkpoint.committed()["in.t"], lost) == ({"0": 9}, 0)


def test_a_stream_that_was_left_out_goes_on_where_it_was(tmp_path: Path) -> None:
    both, alone = ingest(stream("s"), stream("t", 2)), ingest(stream("t", 2))
    come_to(tmp_path, both, {"in.s": {"0": 5}, "in.t": {"0": 9}})
    engine_over(tmp_path, {})._checkpoint(alone)
    checkpoint, _ = engine_over(tmp_path, {})._checkpoint(both)
    assert checkpoint.committed() == {"in.s": {"0": 5}, "in.t": {"0": 9}}


def test_a_stream_that_takes_over_a_name_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Also where nothing ran in between that did not read it."""
    come_to(tmp_path, ingest(stream("s"), stream("t", 2)), {"in.s": {"0": 5}, "in.t": {"0": 9}})
    again = ingest(stream("s", 3), stream("t", 2))
    checkpoint, lost = engine_over(tmp_path, {})._checkpoint(again)
    assert (checkpoint.committed(), lost) == ({"in.s": {"0": EARLIEST}, "in.t": {"0": 9}}, 0)


def test_a_checkpoint_that_names_no_owners_keeps_its_offsets(tmp_path: Path) -> None:
    Checkpoints(tmp_path).renew("run", "another shape", {"in.s": {"0": 5}})
    checkpoint, _ = engine_over(tmp_path, {})._checkpoint(ingest(stream("s")))
    assert checkpoint.committed() == {"in.s": {"0": 5}}


def test_how_far_a_sender_came_that_is_gone_is_not_kept(tmp_path: Path) -> None:
    both, alone = ingest(stream("s"), stream("t", 2)), ingest(stream("t", 2))
    come_to(tmp_path, both, {"in.s": {"0": 5}, "in.t": {"0": 9}})
    gone = Drains(still_read=lambda senders: set(senders) - {1})
    checkpoint, _ = replace(engine_over(tmp_path, {}), drains=gone)._checkpoint(alone)
    assert checkpoint.committed() == {"in.t": {"0": 9}}


def test_a_query_with_state_also_keeps_ids_where_tuples_may_come_twice() -> None:
    windows = whole(grouped(Source(_TIMED), Window(1_000, 1_000), (), (_COUNT,)))
    plain = query(stream("s"), {})
    stateful = replace(plain, plan=windows)
    assert shape_of(stateful, repeats=True) != shape_of(stateful)
    for each in (plain, ingest(stream("s"))):
        assert shape_of(each, repeats=True) == shape_of(each)


def folders(checkpoints: Checkpoints) -> set[str]:
    return {each.name for each in checkpoints.home("run").iterdir() if each.name.isdecimal()}


def test_at_each_start_all_generations_but_the_newest_two_are_deleted(tmp_path: Path) -> None:
    """As senders come and go. The disk must not fill."""
    made = Checkpoints(tmp_path)
    for number in range(2, 12):
        many = ingest(*(stream(f"s{each}", each) for each in range(1, number)))
        newest, _ = engine_over(tmp_path, {})._checkpoint(many)
    assert newest.folder.name == "10" and folders(made) == {"9", "10"}


def test_what_a_crash_left_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    """Also what other steps of a start have made since."""
    engine = engine_over(tmp_path, {})
    run = query(stream("s"), {})
    engine._checkpoint(run)
    for offset in range(5):
        engine.checkpoints.moved("run", {"lab.s": {"0": offset}})
    assert len(folders(engine.checkpoints)) == 6
    found, _ = engine._checkpoint(run)
    assert found.committed() == {"lab.s": {"0": 4}}
    assert folders(engine.checkpoints) == {"5", "6"}
