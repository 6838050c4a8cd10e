"""No small change of what decides goes unnoticed, but for those that decide the same."""

import json
import os
import subprocess
import sys

import pytest

from tests.mutation.equivalent import EQUIVALENT

_UNIT = "tests/unit/catalog/test_"
TESTS = {"catalog/label.py": ("label",), "catalog/clearance.py": ("label",)}


@pytest.mark.skipif("MUTATION" not in os.environ, reason="minutes long: asked for by MUTATION=1")
@pytest.mark.slow
@pytest.mark.parametrize("module", TESTS)
def test_every_mutant_is_noticed_or_equivalent(module: str) -> None:
    tests = [f"{_UNIT}{name}.py" for name in TESTS[module]]
    # A process of its own: it forks one for each mutant, which nothing that runs here may be in.
    command = [sys.executable, "-m", "tests.mutation.run", module, *tests]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert set(json.loads(done.stdout)) <= EQUIVALENT[module].keys()
