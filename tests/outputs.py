"""Changes of the one output of a run, and the execution of one output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from catalog.models import ExecutionRow
from catalog.plan import Plan
from catalog.runs import QueryRun
from catalog.stored_form import to_stored


def with_output(run: QueryRun, **changed: Any) -> QueryRun:
    """The run with another `classes` or `labelled` of its one output."""
    (output,) = run.outputs
    return replace(run, outputs=(replace(output, **changed),))


def alone(number: int, plan: Plan, key: str = "", **values: Any) -> ExecutionRow:
    """An execution of one output alone, which has the output's number."""
    given: dict[str, Any] = {"starting_offsets": {}, "slots": 1, **values}
    return ExecutionRow(id=number, key=key, plan=to_stored(plan), **given)
