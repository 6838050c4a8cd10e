"""The long lane of tests, part by part."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deploy.environment import ROOT
from deploy.errors import require_known

_LINE = 137
"""The columns of the table of results need so many characters."""


def names_of_parts(chosen: list[str]) -> list[str]:
    """The parts that were chosen by name, or all of them.

    Raises:
        DeployError: There is no part of such a name.
    """
    known = list(_parts().PARTS)
    require_known("the long lane has no part", chosen, known)
    return [name for name in known if name in chosen or not chosen]


def names_tests(arguments: list[str]) -> bool:
    """Whether arguments for pytest name files or folders."""
    return any((ROOT / Path(each.partition("::")[0])).exists() for each in arguments)


def run_parts(names: list[str], arguments: list[str], *, again: bool = False) -> int:
    """Run parts one after the other, each in a process of its own, and show what each gave last.

    With `again` only those of their tests run that failed in the last run.

    Returns:
        0 if all tests passed, or else the exit code of the first part that failed.
    """
    codes = []
    for name in names:
        paths = _failed(name) if again else _parts().PARTS[name].paths
        if not paths:
            continue
        print(f"part {name} of the long lane", flush=True)
        codes.append(_run(name, [*arguments, *paths], again=again))
        if codes[-1] not in (0, 1):  # it was stopped or killed, or could not run
            break
    show_results()
    return next((code for code in codes if code), 0)


def show_results() -> None:
    """Print what each part gave when it ran last, and how old its code is."""
    parts = _parts()
    results = parts.last_results()
    table = Table("part", "passed", "failed", "skipped", "minutes", "ended (UTC)", "commit")
    for name in parts.PARTS:
        last = results.get(name)
        if last is None:
            table.add_row(name, "never")
            continue
        counts = (last.passed, len(last.failed), last.skipped, last.minutes)
        code = f"{last.commit} {_age(last.commit)}"
        if last.again:
            code += f"; what failed ran again on {last.again}"
        table.add_row(name, *map(str, counts), last.ended[:16].replace("T", " "), code)
    # A log is no terminal, and breaks no lines.
    Console(width=max(Console().width, _LINE)).print(table)
    for last in results.values():
        for test in last.failed:
            print(f"failed: {test}")


def _failed(name: str) -> tuple[str, ...]:
    last = _parts().last_results().get(name)
    return () if last is None else tuple(last.failed)


def _run(name: str, arguments: list[str], *, again: bool) -> int:
    parts = _parts()
    workers = parts.PARTS[name].workers
    # Arguments come last: `-n` overrides the part's own number of workers.
    own = ["-n", str(workers)] if workers > 1 and not again else []
    command = [sys.executable, "-m", "pytest", *own, *arguments]
    environment = {**os.environ, parts.PART: name + (parts.AGAIN if again else "")}
    child = subprocess.Popen(command, cwd=ROOT, env=environment)
    # Ctrl-C reaches both; whoever ends this process alone means both, too.
    before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        return _ended(child)
    finally:
        signal.signal(signal.SIGTERM, before)


def _ended(child: subprocess.Popen[bytes]) -> int:
    """Wait until pytest has stopped what it started, also after Ctrl-C."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue


def _age(commit: str) -> str:
    """How many commits later the code is that is here."""
    command = ["git", "rev-list", "--count", f"{commit.rstrip('+')}..HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return "(not in this history)"
    later = int(done.stdout)
    return f"({later} commits ago)" if later else ""


def _parts() -> Any:
    # By name: the parts are beside the tests, and the product imports none of them.
    return import_module("tests.parts")
