"""Programs in Java: what they need is fetched, and they are compiled."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from deploy.environment import pyspark_jars
from deploy.jars import find_ivy, resolve
from deploy.runtime import Runtime

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class JavaProgram:
    """A compiled program. `path` is Java's class path, and `heap` is in MB."""

    runtime: Runtime
    name: str
    path: str
    heap: int

    def command(self, *arguments: str) -> list[str]:
        """The command that runs it."""
        return [
            str(self.runtime.java),
            f"-Xmx{self.heap}m",
            "-cp",
            self.path,
            self.name,
            *arguments,
        ]


def compiled(runtime: Runtime, name: str, jars: Path, home: Path, heap: int = 128) -> JavaProgram:
    """Compile the program of that name into the folder `home`, with all jars of a folder."""
    needs = f"{jars}/*"
    command = ["javac", "--release", "17", "-cp", needs, "-d", str(home)]
    subprocess.run([*command, str(PROGRAMS / f"{name}.java")], check=True)
    return JavaProgram(runtime, name, f"{home}{os.pathsep}{needs}", heap)


def fetched_jars(runtime: Runtime, name: str, folder: Path) -> Path:
    """Fetch what the file of that name asks for, such as Flink; returns the folder of the jars."""
    jars = folder / "jars"
    resolve(runtime.java, find_ivy(pyspark_jars()), PROGRAMS / f"{name}.xml", folder, jars)
    return jars
