"""The plain Spark jobs beside which the platform is measured, as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from deploy.environment import ROOT
from deploy.files import private_folder
from deploy.stack import Stack
from tests.bench.process_group import ProcessGroup


class PlainJobs:
    """A Spark driver with plain jobs over one topic; a context manager that leaves none."""

    def __init__(self, stack: Stack, topic: str) -> None:
        """`topic` is the JSON topic that they read."""
        folder = private_folder(stack.state / "plain")
        java = {"JAVA_HOME": str(stack.runtime.java.resolve().parent.parent)}
        arguments = [str(stack.settings_file), str(folder), topic]
        with (folder / "log").open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.bench.plain_driver", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, **java},
                start_new_session=True,
            )
        self.group = ProcessGroup(self._child.pid)
        self._log = folder / "log"

    def run(self, count: int, trigger: str) -> None:
        """Run so many jobs, from the topic's present end, in place of those that ran."""
        self.group.go_on()
        _pipe(self._child.stdin).write(f"{count} {trigger}\n")
        _pipe(self._child.stdin).flush()
        if _pipe(self._child.stdout).readline() != "ready\n":
            raise RuntimeError(f"the plain jobs failed: {_end_of(self._log)}")

    def __enter__(self) -> PlainJobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.group.go_on()
        _pipe(self._child.stdin).close()
        try:
            self._child.wait(60)
        except subprocess.TimeoutExpired:
            self.group.kill()
            self._child.wait()
        _pipe(self._child.stdout).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the child was started without a pipe")
    return pipe


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
