"""Gives each execution to the engine that has the most room."""

from __future__ import annotations

from collections.abc import Mapping


def balanced(
    wanted: Mapping[int, int], taken: Mapping[str, int], most: int
) -> dict[int, str] | None:
    """Find an engine for each execution, so that no engine has more than `most` slots taken.

    `wanted` has the slots that each execution needs, by its id. `taken` has the slots that are
    taken in each engine, also if that is 0. Large executions get an engine first. Returns None if
    they do not all fit.
    """
    free = {engine: most - slots for engine, slots in taken.items()}
    chosen: dict[int, str] = {}
    for execution, slots in sorted(wanted.items(), key=lambda each: (-each[1], each[0])):
        engine = max(free, key=lambda name: free[name])
        if free[engine] < slots:
            return None
        free[engine] -= slots
        chosen[execution] = engine
    return chosen
