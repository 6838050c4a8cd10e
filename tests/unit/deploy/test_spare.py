"""The spare engine takes the place of the engine that asks for it. All processes here are real."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from catalog.settings import Settings
from deploy.__main__ import parser
from deploy.commands import options_of_up
from deploy.part_names import ENGINE_PREFIX, SPARE
from deploy.processes import ManagedProcess
from deploy.settings import merged, write_settings
from deploy.spare import QUIET_S, SpareKeeper
from deploy.stopping import stop_all
from deploy.supervisor import Part, Supervisor
from secfilter.life import READY_FILE
from secfilter.spare import SPARE_FILE
from tests.unit.deploy.test_settings import _local

ENGINE = "query-1"
WITHIN_S = 30
# Without Spark: a spare that tells its name, and an engine that asks for one if there is one.
WAITS = (
    "import os, sys, threading; from secfilter.spare import await_name; "
    "given = await_name(threading.Event()); print('it is', given.engine, flush=True); "
    "open(os.environ['SECFILTER_READY_FILE'], 'w').write('ready'); threading.Event().wait(60)"
)
ASKS = (
    "import threading; from secfilter.spare import ask_for_spare; "
    "print('it asks', flush=True) if ask_for_spare() else threading.Event().wait(60)"
)


@dataclass
class Yard:
    """What a keeper needs of a platform, and a clock."""

    state: Path
    settings: Settings
    now: float = 0.0
    launched: list[str] = field(default_factory=list)

    @property
    def spare(self) -> ManagedProcess:
        return ManagedProcess(SPARE, self.state)

    @property
    def engines(self) -> dict[str, ManagedProcess]:
        return {ENGINE: ManagedProcess(f"{ENGINE_PREFIX}{ENGINE}", self.state)}

    @property
    def engine(self) -> ManagedProcess:
        return self.engines[ENGINE]

    @property
    def spare_file(self) -> Path:
        return self.state / "run" / "spare.ready"

    def ready_file(self, engine: str) -> Path:
        return self.state / "run" / f"{ENGINE_PREFIX}{engine}.ready"

    def launch_engine(self, name: str, *, asks: bool = False) -> None:
        assert asks
        self.launched.append(name)
        files = {READY_FILE: str(self.ready_file(name)), SPARE_FILE: str(self.spare_file)}
        self._start(self.engine, ASKS, files)

    def launch_spare(self) -> None:
        self.launched.append(SPARE)
        self._start(self.spare, WAITS, {READY_FILE: str(self.spare_file)})

    def _start(self, process: ManagedProcess, code: str, files: dict[str, str]) -> None:
        path = {"PYTHONPATH": str(Path(__file__).parents[3])}
        process.start([sys.executable, "-c", code], {**path, **files})

    def keeper(self) -> SpareKeeper:
        return SpareKeeper(self, lambda: self.now)  # type: ignore[arg-type]

    def ready_spare(self, keeper: SpareKeeper) -> None:
        """Let the keeper start a spare, and wait until it can be asked for."""
        self.now += QUIET_S
        keeper.tick()
        _until(self.spare_file.exists)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    table = merged(_local(tmp_path), {"secfilter": {"spare": True}})
    made = Yard(tmp_path, Settings.load(write_settings(table, tmp_path / "settings.toml")))
    yield made
    made.engine.kill()
    made.spare.kill()


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _supervisor(yard: Yard, keeper: SpareKeeper) -> Supervisor:
    part = Part(
        yard.engine, lambda: keeper.launch(ENGINE), resume=lambda: keeper.give_if_asked(ENGINE)
    )
    return Supervisor(yard.state / "run.lock", [part], lambda: yard.now)


def _tick_until(supervisor: Supervisor, done: Callable[[], bool]) -> None:
    def tick() -> bool:
        supervisor.tick()
        return done()

    _until(tick)


def test_the_spare_takes_the_place_of_an_engine_that_asks(yard: Yard) -> None:
    keeper = yard.keeper()
    supervisor = _supervisor(yard, keeper)
    yard.ready_spare(keeper)
    spare = yard.spare.mark
    assert spare is not None

    # The engine does not run. Its new process asks, and ends: nobody waits for a pause then.
    _tick_until(supervisor, lambda: yard.engine.mark == spare)
    assert yard.launched == [SPARE, ENGINE]
    assert yard.spare.mark is None, "it is no spare any more"
    _until(lambda: "it is query-1" in yard.engine.log.read_text())
    _until(lambda: yard.ready_file(ENGINE).exists())
    assert yard.ready_file(ENGINE).read_text() == "ready", "it gives signs as that engine"
    assert "it asks" in yard.engine.log.with_suffix(".log.1").read_text()
    assert not yard.spare_file.exists(), "nobody else asks for it"

    # If it dies, there is no spare, so the engine starts its own Spark.
    os.kill(spare.pid, signal.SIGKILL)
    yard.now += QUIET_S
    _tick_until(supervisor, lambda: yard.engine.mark not in (None, spare))
    mark = yard.engine.mark
    assert yard.launched == [SPARE, ENGINE, ENGINE]
    supervisor.tick()
    assert yard.engine.mark == mark


def test_a_spare_that_has_died_is_asked_for_once(yard: Yard) -> None:
    keeper = yard.keeper()
    supervisor = _supervisor(yard, keeper)
    yard.ready_spare(keeper)
    yard.spare.kill()
    assert yard.spare_file.exists()
    supervisor.tick()
    _until(lambda: yard.engine.mark is None)
    yard.now += 1.0
    supervisor.tick()
    assert yard.engine.mark is not None
    assert not yard.spare_file.exists()
    assert yard.launched == [SPARE, ENGINE, ENGINE]


def test_a_spare_starts_when_nothing_else_does(yard: Yard) -> None:
    keeper = yard.keeper()

    def due() -> bool:
        keeper.tick()
        return yard.spare.mark is not None

    yard.now = QUIET_S - 1
    assert not due()
    keeper.launch(ENGINE)
    yard.now += QUIET_S - 1
    assert not due()
    yard.now += 1
    assert due()
    first = yard.spare.mark
    assert due()
    assert yard.spare.mark == first, "one is enough"
    yard.spare.kill()
    assert not due(), "one that dies is not started again and again"
    yard.now += QUIET_S
    assert due()
    keeper.stop()
    assert yard.spare.mark is None
    assert not yard.spare_file.exists()


@pytest.mark.parametrize("own", [{}, {"spare": True, "cluster": {"host": "h"}}])
def test_there_is_none_unless_the_settings_say_so_or_if_tasks_run_elsewhere(
    tmp_path: Path, own: dict[str, object]
) -> None:
    table = merged(_local(tmp_path), {"secfilter": own})
    yard = Yard(tmp_path, Settings.load(write_settings(table, tmp_path / "settings.toml")))
    keeper = yard.keeper()
    yard.now = 10 * QUIET_S
    keeper.tick()
    assert yard.launched == []


@pytest.mark.parametrize("last", [None, False, True])
def test_a_start_is_like_the_one_before_unless_it_is_told(
    tmp_path: Path, last: bool | None
) -> None:
    if last is not None:
        table = merged(_local(tmp_path), {"secfilter": {"spare": last}})
        settings = Settings.load(write_settings(table, tmp_path / "settings.toml"))
        assert settings.secfilter.spare == last

    def starts_one(*option: str) -> bool:
        return options_of_up(parser().parse_args(["up", "--state", str(tmp_path), *option])).spare

    assert starts_one() == (last is not False), "without a start before there is one"
    assert starts_one("--spare")
    assert not starts_one("--no-spare")


def test_what_a_killed_supervisor_has_left_ends(yard: Yard) -> None:
    yard.ready_spare(yard.keeper())
    first = yard.spare.mark
    assert first is not None
    yard.keeper()
    assert not first.alive(), "with a new supervisor"
    assert not yard.spare_file.exists()
    yard.launch_spare()
    second = yard.spare.mark
    assert second is not None
    assert stop_all(yard.state) == [], "it is no part that anybody has started"
    assert not second.alive()
