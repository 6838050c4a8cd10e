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
from deploy.errors import DeployError


def names_of_parts(chosen: list[str]) -> list[str]:
    """The parts that were chosen by name, or all of them.

    Raises:
        DeployError: There is no part of such a name.
    """
    known = list(_parts().PARTS)
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise DeployError(
            f"the long lane has no part '{unknown[0]}': choose among {', '.join(known)}"
        )
    return [name for name in known if name in chosen or not chosen]


def names_tests(arguments: list[str]) -> bool:
    """Whether arguments for pytest name files or folders."""
    return any((ROOT / Path(each.partition("::")[0])).exists() for each in arguments)


def run_parts(names: list[str], arguments: list[str]) -> int:
    """Run parts one after the other, each in a process of its own, and show what each gave last.

    Returns:
        0 if all tests passed, or else the exit code of the first part that failed.
    """
    codes = []
    for name in names:
        print(f"part {name} of the long lane", flush=True)
        codes.append(_run(name, arguments))
        if codes[-1] > 1:  # it was stopped, or could not run
            break
    show_results()
    return next((code for code in codes if code), 0)


def show_results() -> None:
    """Print what each part gave when it ran last, and how old its code is."""
    parts = _parts()
    results = parts.last_results()
    table = Table("part", "passed", "failed", "skipped", "minutes", "ended", "commit")
    for name in parts.PARTS:
        last = results.get(name)
        if last is None:
            table.add_row(name, "never")
        else:
            counts = (str(each) for each in (last.passed, last.failed, last.skipped, last.minutes))
            table.add_row(name, *counts, last.ended, f"{last.commit} {_age(last.commit)}")
    Console().print(table)


def _run(name: str, arguments: list[str]) -> int:
    part = _parts().PARTS[name]
    # Arguments come last: `-n` overrides the part's own number of workers.
    workers = ["-n", str(part.workers)] if part.workers > 1 else []
    command = [sys.executable, "-m", "pytest", *workers, *arguments, *part.paths]
    child = subprocess.Popen(command, cwd=ROOT, env={**os.environ, _parts().PART: name})
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
    # By name: the parts stand beside the tests, and the product imports none of them.
    return import_module("tests.parts")
