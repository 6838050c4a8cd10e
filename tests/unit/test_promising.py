"""Which tests run first on a mutant."""

import json
from io import BytesIO

from tests.mutation.promising import Past


def _learn(past: Past, *told: tuple[str, float, bool]) -> None:
    past.learn(BytesIO(b"\n".join(json.dumps(each).encode() for each in told)))


def test_what_noticed_the_last_mutants_runs_first_and_then_what_is_quick() -> None:
    past = Past()
    _learn(past, ("slow", 0.5, False), ("slow", 0.5, False), ("quick", 0.01, False))
    assert past.ordered(["slow", "quick"]) == ["quick", "slow"]
    for _ in range(20):
        _learn(past, ("quick", 0.01, False), ("slow", 0.01, True))
    assert past.ordered(["quick", "slow"]) == ["slow", "quick"]


def test_how_long_a_test_takes_is_what_it_took_without_a_change() -> None:
    past = Past()
    _learn(past, ("one", 0.1, False))
    _learn(past, ("one", 9.0, True))
    assert past.seconds == {"one": 0.1}
