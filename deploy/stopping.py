"""Stop what runs, also what an earlier command has left running."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from catalog.errors import PlatformError
from catalog.settings import Settings
from deploy.files import file_lock
from deploy.part_names import ENGINE_PREFIX, SPARE, SUPERVISOR
from deploy.processes import STOP_TIMEOUT_S, ManagedProcess
from secfilter.pace import Pace, pace_of

# What an engine takes to end beside its batches.
ENGINE_LEAVES_S = 10.0


def engines_in(state: Path) -> list[ManagedProcess]:
    """The processes of all engines that were ever started in that folder."""
    marks = sorted((state / "run").glob(f"{ENGINE_PREFIX}*.pid"), reverse=True)
    return [ManagedProcess(mark.stem, state) for mark in marks]


def end_engines(engines: Iterable[ManagedProcess], batches_s: float) -> None:
    """Stop these engines, all at once: each ends its batches within `batches_s` seconds."""
    running = [engine for engine in engines if engine.mark is not None]
    for engine in running:
        engine.ask_to_stop()
    for engine in running:
        engine.stop(batches_s + ENGINE_LEAVES_S)


def batches_end_s(settings_file: Path) -> float:
    """After how many seconds at most an engine with these settings has ended all its batches."""
    try:
        return pace_of(Settings.load(settings_file).secfilter.options).patience_s
    except PlatformError:
        # What cannot be read now was read when the engines started, most likely with usual lengths.
        return Pace().patience_s


def stop_all(state: Path, tell: Callable[[str], object] = lambda _: None) -> list[str]:
    """Stop what an earlier command left running in `state`; returns the names of what ran.

    What may take a while is told to `tell` before.
    """
    if not state.is_dir():
        return []
    batches_s = batches_end_s(state / "settings.toml")
    # First, and without the lock: while it waits for somebody who holds it, nothing is started.
    supervisor = ManagedProcess(SUPERVISOR, state.resolve())
    supervised = _ended(supervisor)
    with file_lock(state / "run.lock"):
        # Whoever held the lock may have started another.
        supervised |= _ended(supervisor)
        engines = [each for each in engines_in(state.resolve()) if each.mark is not None]
        others = [ManagedProcess(name, state.resolve()) for name in ("secadmin", "broker")]
        others = [process for process in others if process.mark is not None]
        running = [*engines, *others]
        if engines:
            tell(f"each query ends with its batch, which takes up to {batches_s:.0f} seconds")
        end_engines(engines, batches_s)
        # A supervisor that was killed has left it.
        ManagedProcess(SPARE, state.resolve()).kill()
        for process in others:
            process.stop(STOP_TIMEOUT_S)
    return [*([SUPERVISOR] if supervised else []), *(process.name for process in running)]


def _ended(process: ManagedProcess) -> bool:
    """Stop the process; whether it ran."""
    runs = process.mark is not None
    if runs:
        process.stop(STOP_TIMEOUT_S)
    return runs
