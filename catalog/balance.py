"""Which engine takes which execution: the one that has most room."""

from __future__ import annotations

from collections.abc import Mapping


def balanced(
    wanted: Mapping[int, int], taken: Mapping[str, int], most: int
) -> dict[int, str] | None:
    """An engine for each execution, so that no engine has more than `most` slots taken.

    `wanted` are the slots of each execution, by its id. `taken` are those of each engine, also of
    an engine where none is. Large executions choose first. None where they do not all fit.
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
