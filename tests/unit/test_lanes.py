"""The lanes: how many, and what is left out of the sample."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.environment import ROOT
from deploy.long_lane import show_results
from tests.lanes import LANE, LONG, is_long, number_of
from tests.parts import PARTS, Recorder, last_results


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


def test_each_file_of_tests_is_in_one_part_of_the_long_lane() -> None:
    files = [str(each.relative_to(ROOT)) for each in (ROOT / "tests").rglob("test_*.py")]
    assert files
    for file in files:
        holding = [
            name
            for name, part in PARTS.items()
            if any(file == path or file.startswith(f"{path}/") for path in part.paths)
        ]
        assert len(holding) == 1, f"{file}: {holding}; tests/parts.py names the parts"


A_PART = """
import pytest

def test_that_passes(): pass

@pytest.mark.parametrize("number", [1, 2])
def test_that_fails(number): assert number == 1

@pytest.mark.skip
def test_that_is_left_out(): pass

@pytest.fixture
def broken(): raise OSError

def test_without_its_fixture(broken): pass

@pytest.fixture
def stuck():
    yield
    raise OSError

def test_that_is_not_taken_down(stuck): pass
"""


def _run_of(part: str, tests: str, folder: Path, *arguments: str, again: bool = False) -> int:
    # A name of its own: a module that was read is not read again.
    file = folder / f"test_{len(tests)}.py"
    file.write_text(tests)
    alone = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--rootdir", str(folder)]
    return int(pytest.main([*alone, *arguments, str(file)], plugins=[Recorder(part, again=again)]))


@pytest.mark.long
def test_a_part_keeps_the_numbers_of_its_last_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.parts.RESULTS", tmp_path / "results.json")
    assert last_results() == {}
    assert _run_of("queries", A_PART, tmp_path) == 1
    first = last_results()["queries"]
    assert (first.passed, first.skipped) == (2, 1)
    assert [each.rpartition("::")[2] for each in first.failed] == [
        "test_that_fails[2]",
        "test_that_is_not_taken_down",
        "test_without_its_fixture",
    ]
    # Neither a run of some of the tests nor one that could not read them says what the part gives.
    assert _run_of("queries", A_PART, tmp_path, "-k", "passes") == 0
    assert _run_of("queries", "import nothing_of_this_name", tmp_path) == 2
    assert _run_of("queries", A_PART, tmp_path, "--collect-only") == 0
    assert last_results() == {"queries": first}
    assert _run_of("unit", "def test_that_passes(): pass", tmp_path) == 0
    assert list(last_results()) == ["unit", "queries"]
    # What failed is mended, and alone runs again.
    mended = "def test_that_fails(): pass\n\ndef test_without_its_fixture(): pass"
    assert _run_of("queries", mended, tmp_path, again=True) == 0
    now = last_results()["queries"]
    assert (now.passed, now.failed, now.skipped, now.commit) == (4, (), 1, first.commit)
    assert now.again
    capsys.readouterr()
    show_results()
    shown = capsys.readouterr().out
    assert "queries" in shown
    assert shown.count("never") == len(PARTS) - 2


@pytest.mark.long
def test_a_part_that_is_not_there_is_refused() -> None:
    command = [sys.executable, "-m", "deploy", "test", "--part", "unit", "--part", "unti"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "the long lane has no part 'unti': choose among unit, queries" in done.stderr
