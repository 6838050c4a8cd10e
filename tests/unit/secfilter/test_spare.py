"""A spare engine waits for its name, and what warms it up delivers nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.relation import Relation
from catalog.runs import FanOutClass, QueryRun
from catalog.topics import ECHO_TOPIC, RESULT_ECHO_TOPIC, lab_topic, quarantine_topic
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.ingest import ingest
from secfilter.lab import read_lab
from secfilter.life import READY_FILE
from secfilter.spare import SPARE_FILE, Given, ask_for_spare, asking_file, await_name, give
from secfilter.warm_up import NAME, OF_INGEST, OF_QUERIES, WarmUp, ingest_run_of, run_of
from tests.unit.secfilter.test_fused_code import RECORDS


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "spare.ready"
    monkeypatch.setenv(READY_FILE, str(file))
    return file


class _Turns(Event):
    """Never set. At its second turn somebody gives the spare a name."""

    def __init__(self, ready: Path, given: Given) -> None:
        super().__init__()
        self._ready, self._given, self._turns = ready, given, 0

    def wait(self, timeout: float | None = None) -> bool:
        assert self._turns < 3, "it was told its name"
        assert self._ready.exists() == (self._turns < 2)
        self._turns += 1
        if self._turns == 2:
            give(self._ready, self._given)
        return False


def test_a_spare_becomes_what_it_is_told(ready: Path) -> None:
    give(ready, Given("old", "none"))
    given = Given("query-2", str(ready.with_name("query-2.ready")))
    assert await_name(_Turns(ready, given)) == given, "what another spare was told does not count"
    assert os.environ[READY_FILE] == given.ready
    assert list(ready.parent.iterdir()) == []


def test_a_spare_that_is_to_end_cannot_be_asked_for(ready: Path) -> None:
    stop = Event()
    waiting = Thread(target=await_name, args=(stop,))
    waiting.start()
    while not ready.exists():
        assert waiting.is_alive()
    stop.set()
    waiting.join(10)
    assert not ready.exists()


def test_an_engine_asks_only_for_a_spare_that_is_there(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not ask_for_spare(), "nobody keeps one"
    spare = ready.with_name("other.ready")
    monkeypatch.setenv(SPARE_FILE, str(spare))
    assert not ask_for_spare()
    assert not asking_file(ready).exists()
    spare.touch()
    assert ask_for_spare()
    assert asking_file(ready).exists()


def test_what_warms_up_delivers_nothing(spark: SparkSession) -> None:
    """Neither an echo, as they are in its topic, nor a tuple, which is never there."""
    echo = (RESULT_ECHO_TOPIC, None, b"life:0:0:1:5", 0, 0, None, None)
    headers = [("tuple-3", b"1;7")]
    sent = (RESULT_ECHO_TOPIC, b"7:0:1", b"0\x1f100", 0, 1, None, headers)
    records = spark.createDataFrame([echo, sent], RECORDS)

    def source(relation: Relation) -> DataFrame:
        return read_lab(records, relation, run.reach_of(relation))

    def results(run: QueryRun) -> list[Row]:
        compiled = compile_plan(analyse(run.plan), source, run.reach_of, narrow=True)
        return fan_out(compiled, run, "key").collect()

    run = run_of(1)
    assert results(run) == []
    (output,), somebody = run.outputs, FanOutClass("out.1", Clearance.of(0))
    with_reader = replace(run, outputs=(replace(output, classes=(somebody,)),))
    assert [row["topic"] for row in results(with_reader)] == ["out.1"], "it is a query like others"


def test_what_warms_ingest_up_delivers_nothing(spark: SparkSession) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    echo = (ECHO_TOPIC, None, b"life:0:0:1:5", 0, 0, at, None)
    sent = (ECHO_TOPIC, None, b'{"at": "2026-01-01T00:00:00Z", "n": 1}', 0, 1, at, None)
    records = spark.createDataFrame([echo, sent], RECORDS)
    assert OF_INGEST.made(records, 1).collect() == []
    made = ingest(records, ingest_run_of(1), {}).collect()
    assert {row["topic"] for row in made} == {lab_topic(NAME), quarantine_topic(NAME)}


def test_an_engine_that_gets_something_to_run_does_not_warm_up(tmp_path: Path) -> None:
    nothing: Any = None
    looks = iter([True, True, False])
    folder = tmp_path / "warm-up"
    WarmUp(nothing, nothing, folder, OF_QUERIES, lambda: next(looks), wait_s=60.0).run()
    assert not [*looks] and not [*tmp_path.iterdir()]
