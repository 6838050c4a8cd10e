"""A run reports when an output that moves away has got all that it gets from the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.clearance import Clearance
from catalog.label import PUBLIC
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun, RunReport, ends_of
from tests.plans import whole
from tests.unit.secfilter.runner_bench import SCHEMA, Bench, run_of

STREAM = Relation(1, "s", RelationKind.STREAM, SCHEMA, None, 0)


def outputs_of(*ends: int | None) -> QueryRun:
    """A run whose outputs get results up to there."""
    made = tuple(
        FedOutput(
            Relation(number, f"o{number}", RelationKind.OUTPUT, SCHEMA, None, 0),
            (FanOutClass(f"out.o{number}", Clearance.of(0)),),
            until_ms=end,
        )
        for number, end in enumerate(ends, start=2)
    )
    return QueryRun("query-1", whole(Source(STREAM)), made, PUBLIC, {})


@dataclass
class Delivered(Bench):
    """What was said about how far results are delivered."""

    delivered: list[int | None] = field(default_factory=list)

    def report(self, report: RunReport) -> None:
        super().report(report)
        self.delivered.append(report.delivered_ms)

    def prove(self, proven: int | None) -> int | None:
        """What is told after so much is proven."""
        self.queries[-1].proven = proven
        self.step(2.0)
        return self.delivered[-1]


def test_it_is_told_once_all_up_to_the_end_is_proven() -> None:
    bench = Delivered((outputs_of(None, 50, 70),))
    bench.step()
    told = [bench.prove(proven) for proven in (None, 0, 50, 51, 70, 71)]
    assert told == [None, None, None, 50, 50, 70]


def test_it_is_not_told_again_and_again() -> None:
    bench = Delivered((outputs_of(50),))
    bench.step()
    bench.prove(60)
    count = len(bench.delivered)
    for proven in (70, 80, 90):
        bench.prove(proven)
    assert len(bench.delivered) == count


def test_what_goes_on_has_no_end() -> None:
    bench = Delivered((outputs_of(None),))
    bench.step()
    assert bench.prove(100) is None
    assert ends_of(None) == ends_of(run_of("ingest-1")) == ends_of(outputs_of(None)) == set()


def test_a_new_query_proves_for_itself() -> None:
    bench = Delivered((outputs_of(50),))
    bench.step()
    assert bench.prove(60) == 50
    bench.queries[-1].over = True
    for _ in range(3):
        bench.step(2.0)
    assert len(bench.queries) == 2
    assert bench.prove(None) is None
