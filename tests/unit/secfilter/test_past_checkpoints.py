"""The checkpoints of removed queries are deleted, and no others, whatever runs meanwhile."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog.errors import Unavailable
from catalog.runs import fused
from secfilter.held_runs import HeldRuns
from secfilter.lock import lock_run
from secfilter.past_checkpoints import PastCheckpoints
from tests.unit.secfilter.fusion_world import query
from tests.unit.secfilter.test_seats import Kept, at

ONE, TWO = query(1), query(2)
OWN = "fused-query-1"


@dataclass
class Engine:
    """An engine whose catalog says that these runs are past."""

    spark: SparkSession
    kept: Kept
    says: dict[str, Sequence[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    away: bool = False

    def __post_init__(self) -> None:
        held = HeldRuns(self.spark, self.kept.checkpoints, self.kept.seats)
        self.past = PastCheckpoints(held, OWN, self.answer)

    def answer(self, names: Collection[str]) -> dict[str, Sequence[str]]:
        if self.away:
            raise Unavailable("the catalog is away")
        self.asked[:] = names
        return {name: copies for name, copies in self.says.items() if name in names}

    def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.past.delete()

    def there(self) -> list[str]:
        return self.kept.checkpoints.runs()


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    kept = Kept(tmp_path / "checkpoints")
    for each in (ONE, TWO):
        kept.ran(each, at(5, 2))
    return Engine(spark, kept, {ONE.name: ()})


def test_what_is_past_is_deleted_at_the_second_look(engine: Engine) -> None:
    """By then no engine takes it for a wanted run any more."""
    (engine.kept.checkpoints.root / ".engines" / "query-1").mkdir(parents=True)
    for name in ("ingest-1", f"{ONE.name}-side", "fused-query-1-a-1"):
        engine.kept.checkpoints.renew(name, "", {}, {})
    engine.look(1)
    assert ONE.name in engine.there()
    assert engine.asked == [ONE.name, f"{ONE.name}-side", TWO.name]
    engine.look(1)
    assert engine.there() == ["fused-query-1-a-1", "ingest-1", f"{ONE.name}-side", TWO.name]
    left = engine.kept.checkpoints.root.rglob(ONE.name)
    assert [each.parent.name for each in left] == [".engines"]


def test_what_is_wanted_again_meanwhile_stays(engine: Engine) -> None:
    engine.look(1)
    engine.says = {}
    engine.look(1)
    engine.says = {ONE.name: ()}
    engine.look(1)
    assert ONE.name in engine.there()


def test_what_still_runs_stays(engine: Engine) -> None:
    lock = lock_run(engine.spark, engine.kept.checkpoints.lock_file(ONE.name))
    engine.look()
    assert engine.kept.checkpoints.previous(ONE.name) is not None
    lock.give_back()
    engine.look(1)
    assert engine.there() == [TWO.name]


def test_state_stays_until_it_is_copied(engine: Engine) -> None:
    engine.says = {ONE.name: (TWO.name, "query-3")}
    engine.look()
    assert ONE.name in engine.there()
    engine.kept.checkpoints.copy(ONE.name, "query-3")
    engine.look(1)
    assert engine.there() == [TWO.name, "query-3"]
    copied = engine.kept.checkpoints.previous("query-3")
    assert copied is not None and copied.committed() == at(5, 2)


@pytest.mark.parametrize(("group", "goes"), [(f"{OWN}-a-1", True), ("fused-query-12-a-1", False)])
def test_what_another_engine_carries_is_left_to_it(engine: Engine, group: str, goes: bool) -> None:
    engine.kept.start(fused(group, [ONE, TWO]))
    engine.look()
    assert (ONE.name not in engine.there()) == goes
    # The others of the group go on where they are.
    assert engine.kept.start(fused(group, [TWO])) == at(5, 2)
    assert engine.kept.seats.place(TWO.name) == at(5, 2)


def test_a_crash_in_between_leaves_nothing_for_good(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        engine.look()
    assert engine.there() == [TWO.name]
    assert list(engine.kept.checkpoints.root.rglob("seat.json")) == []
    engine.says = {}
    engine.look(1)
    assert list((engine.kept.checkpoints.root / ".dropped").iterdir()) == []


def test_it_goes_on_when_the_catalog_is_back(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.away = True
    over = threading.Event()
    keeping = threading.Thread(target=engine.past.keep_up, args=(over, 0.01))
    keeping.start()
    try:
        while "the catalog is away" not in caplog.text:
            assert keeping.is_alive()
        engine.away = False
        while ONE.name in engine.there():
            assert keeping.is_alive()
    finally:
        over.set()
        keeping.join()
