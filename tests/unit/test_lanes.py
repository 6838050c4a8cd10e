"""The lanes: how many, and what is left out of the sample."""

import os
import subprocess
import sys

import pytest

from tests.lanes import LANE, LONG, is_long, number_of


@pytest.mark.parametrize(
    ("lane", "given", "number"),
    [("", "", 5), (LONG, "", 50), ("", "7", 7), (LONG, "7", 7), ("sample", "", 5)],
)
def test_a_number_goes_by_the_lane_unless_it_is_given(
    lane: str, given: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LANE, lane)
    monkeypatch.setenv("HOW_MANY", given)
    assert number_of("HOW_MANY", sample=5, long=50) == number
    assert is_long() == (lane == LONG)


@pytest.mark.parametrize(
    "options", [[], pytest.param(["--long"], marks=pytest.mark.long)], ids=["sample", "long"]
)
def test_the_long_lane_has_more(options: list[str]) -> None:
    command = [sys.executable, "-m", "deploy", "test", *options]
    of_both = "tests/integration/secfilter/test_line.py"
    listing = ["--collect-only", "-q", "tests/mutation", of_both]
    # The run that this test is part of may have a lane, which is not that of the command.
    environment = {name: value for name, value in os.environ.items() if name != LANE}
    done = subprocess.run(
        [*command, *listing], capture_output=True, text=True, check=False, env=environment
    )
    assert ("test_mutation.py" in done.stdout) == bool(options)
    assert ("[container]" in done.stdout) == bool(options)
    assert "[embedded]" in done.stdout
