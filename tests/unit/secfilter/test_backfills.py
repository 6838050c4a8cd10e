"""A backfill in its engine: when all is delivered that it should deliver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from catalog.runs import QueryRun, RunReport, fingerprint
from secfilter.checkpoint import Checkpoint, Checkpoints
from secfilter.fusing import able
from secfilter.kafka_options import Offsets
from tests.unit.secfilter.fusion_world import query
from tests.unit.secfilter.runner_bench import Bench

LAB = "lab.s"
ENDS: Offsets = {LAB: {"0": 7, "1": 3}}


def backfill(ends: Offsets | None = None) -> QueryRun:
    return replace(query(1), name="query-1-5", backfill=True, ends=ends)


@dataclass
class Told(Bench):
    """What was said about whether the backfill has delivered all."""

    through: list[bool] = field(default_factory=list)

    def report(self, report: RunReport) -> None:
        super().report(report)
        self.through.append(report.through)

    def deliver(self, offsets: Offsets) -> bool:
        """What is told after all before these offsets is delivered."""
        self.queries[-1].delivered = offsets
        self.step(2.0)
        return self.through[-1]


def test_it_is_told_once_all_before_its_ends_is_delivered() -> None:
    bench = Told((backfill(ENDS),))
    bench.step()
    behind: Offsets = {LAB: {"0": 7, "1": 2}}
    assert [bench.deliver(each) for each in ({}, behind, ENDS)] == [False, False, True]


def test_its_ends_come_while_it_runs_and_start_nothing_anew() -> None:
    bench = Told((backfill(),))
    bench.step()
    assert not bench.deliver(ENDS), "it has none yet"
    assert fingerprint(backfill()) == fingerprint(backfill(ENDS))
    bench.wanted = (backfill(ENDS),)
    bench.step(2.0)
    assert bench.deliver(ENDS)
    assert len(bench.queries) == 1


def test_a_new_query_has_delivered_nothing_yet() -> None:
    bench = Told((backfill(ENDS),))
    bench.step()
    assert bench.deliver(ENDS)
    bench.queries[-1].over = True
    for _ in range(3):
        bench.step(2.0)
    assert len(bench.queries) == 2 and not bench.through[-1]


def test_it_runs_with_no_other_query() -> None:
    assert able(query(1)) is not None and able(backfill()) is None


def batch(checkpoint: Checkpoint, number: int, end: int, now_ms: int, due_ms: int) -> None:
    """Write a batch as Spark does, with the time before it and behind it."""
    for log, text in (
        ("offsets", f'v1\n{{"batchWatermarkMs":{now_ms}}}\n{{"{LAB}":{{"0":{end}}}}}'),
        ("commits", f'v1\n{{"nextBatchWatermarkMs":{due_ms}}}'),
    ):
        (checkpoint.spark / log).mkdir(parents=True, exist_ok=True)
        (checkpoint.spark / log / str(number)).write_text(text)


def test_results_that_are_due_are_not_delivered_before_the_batch_that_gives_them(
    tmp_path: Path,
) -> None:
    """A window closes in the batch behind the one that moved the time past it."""
    made = Checkpoints(tmp_path).renew("query-1-5", "shape", {LAB: {"0": 2}})
    assert made.delivered() == {LAB: {"0": 2}}
    batch(made, 0, 9, now_ms=0, due_ms=0)
    assert made.delivered() == {LAB: {"0": 9}}, "nothing is due"
    batch(made, 1, 12, now_ms=0, due_ms=60_000)
    assert made.committed() == {LAB: {"0": 12}}
    assert made.delivered() == {LAB: {"0": 9}}, "what has become due comes with the next batch"
    batch(made, 2, 12, now_ms=60_000, due_ms=60_000)
    assert made.delivered() == {LAB: {"0": 12}}


def test_what_the_first_batch_made_due_is_not_delivered_either(tmp_path: Path) -> None:
    made = Checkpoints(tmp_path).renew("query-1-5", "shape", {LAB: {"0": 2}})
    batch(made, 0, 9, now_ms=0, due_ms=60_000)
    assert made.delivered() == {LAB: {"0": 2}}
