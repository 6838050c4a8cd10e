"""The measurements that `python3 -m deploy bench` makes on a fresh platform."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.table import Table

from deploy.stack import Stack

# A hundred subscribers read at once, each with two or three connections.
BROKER_HEAP_MB = 4096


def main(stack: Stack, arguments: list[str]) -> int:
    """Measure `stack`, which runs, and print the figures; 0 also where a target is missed."""
    parser = argparse.ArgumentParser(prog="python3 -m deploy bench")
    parser.add_argument("--json", action="store_true", help="one JSON object a figure")
    parser.add_argument("--only", action="append", default=[], help="a measurement's name")
    options = parser.parse_args(arguments)
    # By name: the measurements stand beside the tests, and the product imports none of them.
    figures = import_module("tests.bench").measure(stack, options.only)
    if options.json:
        for figure in figures:
            print(json.dumps(figure.as_json()), flush=True)
    else:
        _print_table(figures)
    return 0


def _print_table(figures: Iterable[Any]) -> None:
    table = Table("figure", "value", "unit", "target", "holds")
    words = {True: "yes", False: "NO", None: ""}
    for figure in figures:
        target = "" if figure.target is None else f"≤ {figure.target:g}"
        row = (figure.name, f"{figure.value:.2f}", figure.unit, target, words[figure.holds])
        table.add_row(*row)
    Console().print(table)
