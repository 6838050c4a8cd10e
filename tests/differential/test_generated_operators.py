"""Random moving windows and event patterns: the operators in Python agree with the oracle.

No Spark runs here, so there are many cases: DIFFERENTIAL_WINDOW_CASES sets how many of moving
windows (200, and 2,000 in the long lane), DIFFERENTIAL_PATTERN_CASES how many of event patterns
(300, and 4,000), DIFFERENTIAL_SEED the first one's seed (0). A failure names the seed.

The plans, the records and the classes are those of `tests/differential/test_generated.py`, which
runs the first of these seeds in Spark. Here the records come in batches, out of order and some too
late, and between these the state is kept as a text.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from catalog.plan import Aggregate, walk
from tests.differential.case import Case
from tests.differential.comparing import differences
from tests.differential.make_case import make_matching_case, make_moving_case
from tests.differential.operators import Ran, operator_of, run_in_batches
from tests.lanes import number_of

_WINDOWS = number_of("DIFFERENTIAL_WINDOW_CASES", sample=200, long=2_000)
_PATTERNS = number_of("DIFFERENTIAL_PATTERN_CASES", sample=300, long=4_000)
_FIRST = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
# In how many of a hundred cases at least: about two thirds of what there is.
_LEAST = {"results": 30, "something late": 15}


def _check(seeds: range, make: Callable[[int], Case]) -> list[Ran]:
    """Run the cases and check each; all that differ are named."""
    ran, differing = [], []
    for seed in seeds:
        case = make(seed)
        operator = operator_of(case)
        ran.append(run_in_batches(operator, Random(seed)))
        found, wanted = operator.outcome(ran[-1].results), operator.expected(ran[-1].tables)
        near = any(isinstance(each, Aggregate) for each in walk(operator.node))
        if several := differences(wanted, found, near=near):
            differing.append("\n".join([case.name, *several, f"{operator!r}"]))
    assert not differing, "\n\n".join([f"{len(differing)} of {len(seeds)} differ", *differing])
    return ran


def _check_worth(ran: list[Ran]) -> None:
    """Enough of the cases have results, and tuples that came too late."""
    found = {
        "results": sum(1 for each in ran if each.results),
        "something late": sum(1 for each in ran if each.late),
    }
    assert all(found[name] * 100 >= least * len(ran) for name, least in _LEAST.items()), found


@pytest.mark.parametrize(
    ("make", "number"),
    [(make_moving_case, _WINDOWS), (make_matching_case, _PATTERNS)],
    ids=["moving windows", "event patterns"],
)
def test_generated(make: Callable[[int], Case], number: int) -> None:
    ran = _check(range(_FIRST, _FIRST + number), make)
    if number >= 100:
        _check_worth(ran)
