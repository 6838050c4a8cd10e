"""The measurements still name what they measure: they run rarely, and their names would age."""

from __future__ import annotations

import pytest

from tests.bench.query_setup import ADDING, SUBSCRIBING


@pytest.mark.parametrize("part", [*ADDING, *SUBSCRIBING])
def test_what_the_stopwatch_times_exists(part: str) -> None:
    for owner, name in {**ADDING, **SUBSCRIBING}[part]:
        assert callable(getattr(owner, name)), f"{owner.__name__}.{name}"
