"""The measurements that `python3 -m deploy bench` makes on a fresh platform."""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.table import Table

from deploy.errors import require_known
from deploy.stack import Stack

# A hundred subscribers read at once, each with two or three connections.
BROKER_HEAP_MB = 4096


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The benchmarks' own arguments.

    Raises:
        DeployError: There is no measurement of such a name.
    """
    parser = argparse.ArgumentParser(prog="python3 -m deploy bench")
    parser.add_argument("--json", action="store_true", help="one JSON object a figure")
    parser.add_argument("--only", action="append", default=[], help="a measurement's name")
    parser.add_argument(
        "--last", action="store_true", help="show what each gave last, and measure nothing"
    )
    options = parser.parse_args(arguments)
    require_known("there is no measurement", options.only, _benchmarks().MEASUREMENTS)
    return options


def measure(stack: Stack, options: argparse.Namespace) -> int:
    """Measure `stack`, which runs, and print the figures; 0 also where a target is missed."""
    earlier = _earlier()
    figures = _benchmarks().measure(stack, options.only)
    if options.json:
        for figure in figures:
            print(json.dumps(figure.as_json()), flush=True)
        return 0
    table = Table("figure", "value", "before", "unit", "target", "holds")
    for figure in figures:
        before = earlier.get(figure.name)
        table.add_row(*_row(figure, "" if before is None else f"{before:.2f}"))
    Console().print(table)
    return 0


def show_last() -> None:
    """Print what each measurement gave last, when, on which code and on how fast a machine."""
    kept = _benchmarks().last_figures()
    table = Table("figure", "value", "measured", "unit", "target", "holds")
    for name in _benchmarks().MEASUREMENTS:
        last = kept.get(name)
        if last is None:
            table.add_row(f"[bold]{name}[/]", "", "never")
            continue
        table.add_row(f"[bold]{name}[/]", "", f"{last.ended}, {last.commit}, {last.count_s} s")
        for figure in last.figures:
            table.add_row(*_row(figure, ""))
    Console().print(table)
    print("The seconds beside a commit: how long Python took to count to ten million then.")


def _row(figure: Any, before: str) -> tuple[str, ...]:
    words = {True: "yes", False: "NO", None: ""}
    target = "" if figure.target is None else f"≤ {figure.target:g}"
    value = f"{figure.value:.2f}"
    return figure.name, value, before, figure.unit, target, words[figure.holds]


def _earlier() -> dict[str, float]:
    kept = _benchmarks().last_figures().values()
    return {figure.name: figure.value for each in kept for figure in each.figures}


def _benchmarks() -> Any:
    # By name: the measurements are beside the tests, and the product imports none of them.
    return import_module("tests.bench")
