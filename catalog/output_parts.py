"""Which results of an output each wanted execution delivers.

Nearly always an output has one execution, which delivers all of them. While it moves to another
one, it has two, and each result comes from one of both (`catalog.moves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, aliased

from catalog.models import ExecutionRow, Object, OutputRow, QueryRow
from catalog.run_names import query_run_name


@dataclass(frozen=True, slots=True)
class OutputPart:
    """What the execution delivers to the output: results later than `after_ms`, up to `until_ms`.

    Both are event times; None is no limit. `moves` says whether the output has another execution
    beside this one.
    """

    output: OutputRow
    execution: ExecutionRow
    after_ms: int | None
    until_ms: int | None
    moves: bool

    @classmethod
    def of(cls, output: OutputRow, execution: ExecutionRow) -> OutputPart:
        """The part of one of the output's executions."""
        if output.moves_to == execution.id:
            return cls(output, execution, output.turn_ms, None, True)
        until = output.turn_ms if output.turns else None
        return cls(output, execution, output.after_ms, until, output.moves_to is not None)


def wanted_parts(session: Session) -> Sequence[OutputPart]:
    """The parts of the outputs whose queries should run, in the order of the executions.

    One that is to be merged anew with changed policies waits for that.
    """
    owner = aliased(Object)
    its_own = OutputRow.execution_id == ExecutionRow.id
    query = (
        select(OutputRow, ExecutionRow)
        .join(ExecutionRow, or_(its_own, OutputRow.moves_to == ExecutionRow.id))
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .join(owner, owner.id == OutputRow.query_id)
        .where(QueryRow.running, QueryRow.views_changed_at.is_(None))
        .where(Object.removed_at.is_(None), owner.removed_at.is_(None))
    )
    rows = session.execute(query.order_by(ExecutionRow.id, OutputRow.object_id))
    return [OutputPart.of(output, execution) for output, execution in rows]


def copies(session: Session) -> Mapping[int, Sequence[str]]:
    """Execution -> the names of the runs that begin with a copy of its state."""
    here = or_(OutputRow.execution_id == ExecutionRow.id, OutputRow.moves_to == ExecutionRow.id)
    query = (
        select(ExecutionRow.copy_of, ExecutionRow.id)
        .join(OutputRow, here)
        .join(Object, Object.id == OutputRow.object_id)
        .where(ExecutionRow.copy_of.is_not(None), Object.removed_at.is_(None))
        .distinct()
        .order_by(ExecutionRow.id)
    )
    found: dict[int, list[str]] = {}
    for of, id_ in session.execute(query):
        if of is not None:
            found.setdefault(of, []).append(query_run_name(id_))
    return found
