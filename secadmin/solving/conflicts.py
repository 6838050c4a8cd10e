"""NR and PR: whether a policy leaves nothing, or a part, of what a query asks for (002 §3.5).

The paper looks at pairs of comparisons in the disjunctive form of both conditions. Here a solver
decides both conditions as a whole, so it also finds what no pair shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import z3

from catalog.expression import Expression, conjuncts
from catalog.schema import Schema
from secadmin.solving.formula import Formulas

TIMEOUT_MS = 500
MEMORY_MB = 512
z3.set_param("memory_max_size", MEMORY_MB)


class Loss(StrEnum):
    """What a query loses by a policy."""

    NOTHING = "nothing"
    PART = "PR"
    """A tuple that fulfils the query's condition may be hidden."""
    ALL = "NR"
    """No tuple fulfils both conditions."""
    OWN = "own"
    """No tuple fulfils the query's own condition."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """What is lost. If it is all, `clash` has parts of both conditions that exclude each other."""

    loss: Loss
    clash: tuple[Expression, ...] = ()


def conflict(asked: Expression | None, allowed: Expression | None, schema: Schema) -> Conflict:
    """What a query that asks for these tuples loses by a policy that allows those.

    None stands for all tuples. What the solver cannot decide in time may be lost in part.
    """
    if allowed is None:
        return Conflict(Loss.NOTHING)
    try:
        return _decided(asked, allowed, Formulas(schema))
    except z3.Z3Exception:
        # Such as too little memory.
        return Conflict(Loss.PART)


def _decided(asked: Expression | None, allowed: Expression, formulas: Formulas) -> Conflict:
    own = [(part, formulas.truth(part).true) for part in conjuncts(asked)] if asked else []
    theirs = [(part, formulas.truth(part).true) for part in conjuncts(allowed)]
    if own and _clash(own, formulas) is not None:
        return Conflict(Loss.OWN)
    clash = _clash([*own, *theirs], formulas)
    if clash is not None:
        return Conflict(Loss.ALL, clash)
    hidden = z3.Not(z3.And([truth for _, truth in theirs]))
    lost = _answer([*(truth for _, truth in own), hidden], formulas)
    return Conflict(Loss.NOTHING if lost == z3.unsat else Loss.PART)


def _answer(wanted: Sequence[z3.BoolRef], formulas: Formulas) -> z3.CheckSatResult:
    solver = _solver(formulas)
    solver.add(*wanted)
    return solver.check()


def _clash(
    parts: Sequence[tuple[Expression, z3.BoolRef]], formulas: Formulas
) -> tuple[Expression, ...] | None:
    """Some of the parts that exclude each other, or None if all can be true, or nobody knows."""
    solver = _solver(formulas)
    solver.set("core.minimize", True)
    names = {f"part:{number}": part for number, (part, _) in enumerate(parts)}
    for name, (_, truth) in zip(names, parts, strict=True):
        solver.assert_and_track(truth, name)
    if solver.check() != z3.unsat:
        return None
    core = {str(each) for each in solver.unsat_core()}
    return tuple(part for name, part in names.items() if name in core)


def _solver(formulas: Formulas) -> z3.Solver:
    solver = z3.Solver(ctx=formulas.context)
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*formulas.ranges())
    return solver
