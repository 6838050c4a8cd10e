"""What is listed as an equivalent mutant is still in its module: a changed line is judged anew.

That it is a mutant takes long to find out, so the long lane does (`tests.mutation.run`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.test_mutation import TESTS


@pytest.mark.parametrize("module", EQUIVALENT)
def test_what_was_judged_still_stands_there(module: str) -> None:
    assert module in TESTS
    source = " ".join(line.strip() for line in Path(module).read_text().splitlines())
    originals = {name.split(" -> ")[0] for name in EQUIVALENT[module]}
    assert {original for original in originals if original not in source} == set()
