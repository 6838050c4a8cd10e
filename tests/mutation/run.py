"""`python -m tests.mutation.run MODULE[:NAME,...] PYTEST-ARGUMENT...`: what no test notices.

With names only these functions and classes of the module are mutated. Prints the mutants by their
names as JSON, without those that are listed as equivalent, which are not tried. Each mutant is
tested in a forked process in which the module has the mutated source, so nothing on disk changes
and all third-party imports are paid for once.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO

import pytest
from hypothesis import Phase, settings

from tests.mutation import shared_spark
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.promising import Past, Teller

# What the tests import beside this repository's own code, which must be imported mutated.
PAID_ONCE = (
    "alembic.command",
    "bcrypt",
    "confluent_kafka.admin",
    "hypothesis.extra.array_api",
    "pyspark.sql.streaming.query",
    "sqlalchemy.orm",
    "xdist.scheduler.loadscope",
)
# A mutant may never end: it has so many times as long as the unchanged module, and so many times as
# much of the processor, which is a narrower limit: it does not depend on what else runs here.
PATIENCE, WORK = 10, 4
MEMORY_BYTES = 4 << 30
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "--capture=no", "--tb=no")
# Of no use here, and slow to begin.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module, with another source than on disk."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source

    def find_spec(
        self, fullname: str, path: object, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def get_source(self, fullname: str) -> str:
        return self._source


def survivors(module: Path, only: Collection[str], tests: Sequence[str]) -> list[str]:
    """The names of the module's mutants under which all tests pass, sorted.

    `only` names what of the module is mutated (nothing: all). Those that are listed as equivalent
    are left out. Raises RuntimeError where the tests do not pass without any change, and where what
    is listed is no mutant.
    """
    name = _name(module)
    original = module.read_text()
    _import_what_stays(name, tests)
    if with_spark(module):
        shared_spark.start()
    begun, work, past = time.monotonic(), _work_of_children_s(), Past()
    if not _passes(module, Mutant("", original), tests, past):
        raise RuntimeError("the tests fail without any mutation")
    timeout_s = PATIENCE * (time.monotonic() - begun)
    work_s = math.ceil(WORK * (_work_of_children_s() - work))
    workers, parent = os.cpu_count() or 1, os.getppid()
    running: list[_Try] = []
    found: list[str] = []
    for mutant in _to_try(module, original, only):
        if len(running) >= workers:
            _reap(running, found, past, timeout_s)
        if os.getppid() != parent:
            raise RuntimeError("nobody waits for this any more")
        running.append(_start(module, mutant, tests, past, work_s))
    while running:
        _reap(running, found, past, timeout_s)
    if not _passes(module, Mutant("", original), tests, past, timeout_s):
        raise RuntimeError("the tests fail without any mutation by now: what did they notice?")
    return sorted(found)


def _import_what_stays(name: str, tests: Sequence[str]) -> None:
    """Import all that the tests need but the module itself and whatever imports it."""
    for needed in PAID_ONCE:
        importlib.import_module(needed)
    for test in tests:
        if test.endswith(".py"):
            importlib.import_module(".".join(Path(test).with_suffix("").parts))
    for mutated in importers(name):
        sys.modules.pop(mutated, None)


def importers(name: str) -> set[str]:
    """The module and those that import it, directly or not, of this repository's and imported."""
    files = {
        imported: Path(module.__file__)
        for imported, module in list(sys.modules.items())
        if getattr(module, "__file__", None) is not None and module.__file__
    }
    imports = {
        imported: _imports(file.read_text())
        for imported, file in files.items()
        if file.is_relative_to(Path.cwd()) and ".venv" not in file.parts
    }
    found, new = set[str](), {name}
    while new:
        found |= new
        new = {imported for imported, names in imports.items() if names & new} - found
    return found


def _imports(source: str) -> set[str]:
    """What may be a module among what the source imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _to_try(module: Path, original: str, only: Collection[str]) -> list[Mutant]:
    """The module's mutants but for those that are listed as equivalent."""
    listed = EQUIVALENT.get(str(module), {})
    every = list(mutants(original, only))
    if missing := listed.keys() - {mutant.name for mutant in every}:
        raise RuntimeError(f"listed as equivalent, but no mutants: {sorted(missing)}")
    return [mutant for mutant in every if mutant.name not in listed]


def _passes(
    module: Path, mutant: Mutant, tests: Sequence[str], past: Past, timeout_s: float = math.inf
) -> bool:
    found: list[str] = []
    _reap([_start(module, mutant, tests, past)], found, past, timeout_s)
    return bool(found)


def with_spark(module: Path) -> bool:
    """Whether the module's tests need Spark."""
    return module.parts[0] == "secfilter"


def _name(module: Path) -> str:
    return ".".join(module.with_suffix("").parts)


def _work_of_children_s() -> float:
    """How long the processor worked for the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class _Try:
    """A process that tests a mutant, since when, and what it tells."""

    mutant: Mutant
    process: int
    begun: float
    told: IO[bytes]


def _start(
    module: Path,
    mutant: Mutant,
    tests: Sequence[str],
    past: Past,
    work_s: int = resource.RLIM_INFINITY,
) -> _Try:
    told = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was read
    child = os.fork()
    if child:
        return _Try(mutant, child, time.monotonic(), told)
    code = 1
    try:
        # A mutant may ask for all the memory there is.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (work_s, work_s))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.meta_path.insert(0, _Mutated(_name(module), mutant.source))
        # Whether it fails is all that matters: nothing is shrunk, and the same is drawn each time.
        settings.register_profile(
            "mutants", phases=[Phase.generate], max_examples=15, derandomize=True, database=None
        )
        settings.load_profile("mutants")
        with shared_spark.taken_over() if with_spark(module) else nullcontext():
            code = int(pytest.main([*OPTIONS, *tests], plugins=[Teller(past, told)]))
    finally:
        os._exit(code)


def _reap(running: list[_Try], found: list[str], past: Past, timeout_s: float) -> None:
    """Wait for one process; a mutant that all tests pass is added to `found`."""
    while True:
        for each in list(running):
            ended, status = os.waitpid(each.process, os.WNOHANG)
            if ended:
                running.remove(each)
                with each.told:
                    past.learn(each.told)
                if status == 0:
                    found.append(each.mutant.name)
                    if each.mutant.name:
                        # It may take long until all were tried.
                        print(f"not noticed: {each.mutant.name}", file=sys.stderr)
                return
            if time.monotonic() > each.begun + timeout_s:
                os.kill(each.process, 9)
        time.sleep(0.02)


if __name__ == "__main__":
    _module, _, _only = sys.argv[1].partition(":")
    _names = [name for name in _only.split(",") if name]
    print(json.dumps(survivors(Path(_module), _names, sys.argv[2:]), indent=1))
