"""What the oracle says of a case."""

from __future__ import annotations

from tests.differential.case import Case, Class, Outcome
from tests.oracle.delivery import deliver_strong, deliver_weak
from tests.oracle.plans import run
from tests.oracle.values import Tuple


def expected(case: Case) -> Outcome:
    """The case's outcome by the oracle, all windows closed."""
    tables = {name: [each.tuple() for each in stored] for name, stored in case.records.items()}
    results = run(case.plan, tables)
    return Outcome(results, tuple(_delivered(case, each, results) for each in case.classes))


def _delivered(case: Case, to: Class, results: list[Tuple]) -> list[Tuple]:
    if to.weak:
        return deliver_weak(results, to.clearance, case.sources)
    return deliver_strong(results, to.clearance)
