"""No small change of what decides goes unnoticed, but for those that decide the same."""

import json
import subprocess
import sys

import pytest

_UNIT = "tests/unit/catalog/test_"
# Each module's tests, those first that notice most, and options that leave out what they need not.
_LABEL = ("--noconftest", f"{_UNIT}label.py")
_AUTHORIZER = ("authorizer", "visibility", "clearance_of", "senders", "roles", "authorizer_casbin")
TESTS = {
    "catalog/label.py": _LABEL,
    "catalog/clearance.py": _LABEL,
    "catalog/authorizer.py": (
        "-k",
        "not postgresql",
        *(f"{_UNIT}{name}.py" for name in _AUTHORIZER),
    ),
    "catalog/senders.py": ("-k", "not postgresql", f"{_UNIT}senders.py"),
}


@pytest.mark.long
@pytest.mark.parametrize("module", TESTS)
def test_every_mutant_is_noticed_or_equivalent(module: str) -> None:
    # A process of its own: it forks one for each mutant, which nothing that runs here may be in.
    command = [sys.executable, "-m", "tests.mutation.run", module, *TESTS[module]]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout) == []
