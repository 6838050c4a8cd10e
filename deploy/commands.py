"""The commands of `python3 -m deploy`, inside the environment."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TypeVar

from catalog.errors import PlatformError
from deploy import bench, demo
from deploy.broker import last_port
from deploy.broker_memory import DEFAULT_HEAP_MB
from deploy.cluster_check import cluster_warnings
from deploy.cluster_files import Hosts, write_cluster
from deploy.console import console_command
from deploy.environment import ROOT, find_java
from deploy.errors import DeployError
from deploy.files import private_folder
from deploy.fraud import demo as fraud
from deploy.hints import down_command, up_command
from deploy.known_state import require_known_state
from deploy.long_lane import names_of_parts, names_tests, run_parts, show_results
from deploy.papers import chinese_wall, shared_queries
from deploy.runtime import ensure_fast_start, ensure_runtime
from deploy.scenario.story import BATCH_MS
from deploy.stack import (
    BROKER_PORT,
    SECADMIN_PORT,
    Stack,
    StackOptions,
    last_engines,
    last_secadmin_port,
    last_spare,
)
from deploy.stopping import stop_all
from deploy.trial.command import try_query
from deploy.weather import demo as weather
from secadmin.cli.screen import Screen

_T = TypeVar("_T")
CHECKED = ("catalog", "secadmin", "secfilter", "deploy", "tests")


def run(options: argparse.Namespace) -> int:
    """Run the command that the command line named; returns its exit code.

    Raises:
        DeployError: With what to do about it.
    """
    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "demo": _demo,
        "test": _test,
        "up": _up,
        "down": _down,
        "check": _check,
        "cluster": _cluster,
        "bench": _bench,
        "console": _console,
        "try": _try,
    }
    return commands[options.command](options)


def _check(_: argparse.Namespace) -> int:
    """Lint, format and types; every one runs, so that one run shows all there is to do."""
    present = [name for name in CHECKED if any((ROOT / name).rglob("*.py"))]
    failed = []
    for tool in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy", "--strict"]):
        print(f"$ {' '.join([*tool, *present])}", flush=True)
        done = subprocess.run([sys.executable, "-m", *tool, *present], cwd=ROOT, check=False)
        if done.returncode:
            failed.append(" ".join(tool))
    print(f"check: failed: {', '.join(failed)}" if failed else "check: passed")
    return 1 if failed else 0


def _test(options: argparse.Namespace) -> int:
    """Become pytest, so that a signal reaches it and its exit code is ours; or run the parts."""
    if options.results:
        show_results()
        return 0
    names = names_of_parts(options.part)
    runtime = ensure_runtime()
    # Here, because one that a platform of the tests makes in the background takes longer.
    ensure_fast_start(runtime)
    os.environ["JAVA_HOME"] = str(runtime.java.resolve().parent.parent)
    if options.long or options.part or options.failed:
        os.environ["TEST_LANE"] = "long"  # tests/lanes.py
    if options.failed:
        return run_parts(names, options.arguments, again=True)
    if not options.part and (not options.long or names_tests(options.arguments)):
        os.chdir(ROOT)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *options.arguments])
    return run_parts(names, options.arguments)


def _try(options: argparse.Namespace) -> int:
    os.environ["JAVA_HOME"] = str(find_java().resolve().parent.parent)
    screen = Screen(options.json)
    return try_query(options.query, options.data, screen, weak=options.weak, svg=options.svg)


def options_of_up(options: argparse.Namespace) -> StackOptions:
    """What `up` starts: as it is told, or else as at the last start, or else as usual."""
    last_admin_port = last_secadmin_port(options.state)
    return StackOptions(
        state=options.state,
        broker_port=_given(options.port, last_port(options.state), BROKER_PORT),
        secadmin_port=_given(options.secadmin_port, last_admin_port, SECADMIN_PORT),
        settings=options.settings,
        broker_heap_mb=options.broker_heap,
        detached=True,
        engines=options.engines or last_engines(options.state) or 1,
        spare=_given(options.spare, last_spare(options.state), True),
    )


def _up(options: argparse.Namespace) -> int:
    require_known_state(options.state, options.settings)
    stack = Stack(options_of_up(options), ensure_runtime())
    stack.start()
    if options.settings is not None:
        for warning in cluster_warnings(stack.settings.kafka):
            print(f"warning: {warning}", file=sys.stderr)
    print(_next_steps(stack))
    return 0


def _given(*choices: _T | None) -> _T:
    """The first that is given. (A port may be 0: then a free one is found.)"""
    return next(choice for choice in choices if choice is not None)


def _next_steps(stack: Stack) -> str:
    settings = stack.settings
    again = up_command(stack.state, stack.options.settings)
    return f"""\
The platform is up.
  Kafka     {settings.kafka.users_bootstrap} (SASL_SSL, SCRAM-SHA-512, CA {settings.kafka.ca_file})
  SecAdmin  {stack.secadmin_url} (CA {settings.secadmin.ca_file})
  logs      {stack.state / "logs"}

Next, log in. The first administrator is `admin`; `cat` shows the password for the first log-in,
and `secadmin passwd` sets your own:
  . .venv/bin/activate
  export SECADMIN_URL={stack.secadmin_url} SECADMIN_CA={quote(str(settings.secadmin.ca_file))}
  cat {quote(str(settings.secadmin.first_password_file))}
  secadmin login admin
  secadmin passwd
  secadmin --help
Bring back by hand what has stopped (a supervisor does so by itself):
  {again}
Stop everything:
  {down_command(stack.state)}"""


def _down(options: argparse.Namespace) -> int:
    stopped = stop_all(options.state, lambda words: print(words, file=sys.stderr, flush=True))
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing was running")
    return 0


def _cluster(options: argparse.Namespace) -> int:
    hosts = Hosts(
        kafka=tuple(options.kafka.split(",")),
        controllers=tuple(options.controllers.split(",")),
        postgresql=tuple(options.postgresql.split(",")),
        secadmin=tuple(options.secadmin.split(",")),
        address=options.address,
    )
    write_cluster(options.folder, hosts, options.engines)
    print(f"written to {options.folder}; docs/cluster.md says what goes where")
    return 0


def _console(options: argparse.Namespace) -> int:
    """Become Kafka's tool."""
    try:
        command = console_command(ensure_runtime(), options.folder, options.arguments)
    except PlatformError as error:
        raise DeployError(str(error)) from error
    sys.stdout.flush()
    os.execv(command[0], command)


def _demo(options: argparse.Namespace) -> int:
    stories = {
        "004": demo.main,
        "000": shared_queries.main,
        "001": chinese_wall.main,
        "002": weather.main,
        "003": fraud.main,
    }
    return _on_fresh_stack(stories[options.paper], batch_ms=BATCH_MS)


def _bench(options: argparse.Namespace) -> int:
    wanted = bench.options_of(options.arguments)
    if wanted.last:
        bench.show_last()
        return 0
    ensure_fast_start(ensure_runtime())
    measure = partial(bench.measure, options=wanted)
    return _on_fresh_stack(measure, broker_heap_mb=bench.BROKER_HEAP_MB)


def _on_fresh_stack(
    work: Callable[[Stack], int],
    batch_ms: int | None = None,
    broker_heap_mb: int = DEFAULT_HEAP_MB,
) -> int:
    """Run `work` on a platform of its own, on free ports; after a failure its logs stay."""
    runtime = ensure_runtime()
    parent = private_folder(ROOT / ".state")
    with tempfile.TemporaryDirectory(dir=parent, prefix="fresh-") as folder:
        options = StackOptions(
            Path(folder),
            broker_port=0,
            secadmin_port=0,
            broker_heap_mb=broker_heap_mb,
            batch_ms=batch_ms,
        )
        try:
            with Stack(options, runtime) as stack:
                return work(stack)
        except DeployError as error:
            kept = _keep_logs(Path(folder), parent / "failed-logs")
            raise DeployError(str(error).replace(str(Path(folder) / "logs"), str(kept))) from error


def _keep_logs(state: Path, target: Path) -> Path:
    """Move the logs of `state` to `target`, in place of those of the last failure."""
    shutil.rmtree(target, ignore_errors=True)
    if (state / "logs").exists():
        (state / "logs").rename(target)
    return target
