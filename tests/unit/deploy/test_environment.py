"""Checks of the machine: each failure is one line that says what to do."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy import environment
from deploy.environment import GIGABYTE, ROOT
from deploy.errors import DeployError


def _java(home: Path, script: str) -> Path:
    """A JAVA_HOME whose `java` is that shell script."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("version", "number"),
    [("1.8.0_392", 8), ("11.0.21", 11), ("17", 17), ("21.0.1-ea", 21), ("25", 25)],
)
def test_java_version(tmp_path: Path, version: str, number: int) -> None:
    java = _java(tmp_path, f"echo 'openjdk version \"{version}\" 2024-01-01' >&2")
    assert environment.java_version(java) == number


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11, and 17 or later is needed"),
        ("exit 1", "does not tell its version"),
        ("echo hello", "does not tell its version"),
    ],
)
def test_unusable_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    _java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DeployError, match=words):
        environment.find_java()


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = _java(tmp_path, "echo 'openjdk version \"99\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert environment.find_java() == java


@pytest.mark.parametrize("home", [None, "/nonexistent"])
def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(DeployError, match="install Java 17 or later"):
        environment.find_java()


def test_old_python() -> None:
    with pytest.raises(DeployError, match=r"Python 3\.11 or later is needed, this is 3\.10"):
        environment.check_python((3, 10))
    environment.check_python((3, 11))


def test_full_disk() -> None:
    with pytest.raises(DeployError, match=r"3 GB of free disk .* 2 GB are free: make room"):
        environment.check_disk(2 * GIGABYTE, 3 * GIGABYTE)
    environment.check_disk(3 * GIGABYTE, 3 * GIGABYTE)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            "WARNING: x\nERROR: No matching distribution for y\nERROR: z",
            "No matching distribution for y",
        ),
        ("Traceback\nOSError: disk\n", "OSError: disk"),
        ("", "pip said nothing"),
    ],
)
def test_pip_reason(output: str, reason: str) -> None:
    assert environment.pip_reason(output) == reason


def test_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert environment.cache_folder() == Path("/somewhere/secure-streams")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert environment.cache_folder() == Path("/home/somebody/.cache/secure-streams")


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = {
        line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    names = {re.split(r"[\[<>=]", name)[0].lower() for name in wanted}
    assert names | {environment.DATA_PACKAGE} <= pinned


def _command(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_failure_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    done = _command("up", "--state", str(tmp_path), JAVA_HOME="/nonexistent")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: no java in JAVA_HOME (/nonexistent): install Java 17")


def test_down_with_nothing_running(tmp_path: Path) -> None:
    done = _command("down", "--state", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "nothing was running\n")
    assert not (tmp_path / "none").exists()


def test_unknown_arguments_go_to_pytest_and_nowhere_else() -> None:
    assert _command("down", "--nonsense").returncode == 2
    done = _command("test", "--collect-only", "-q", "tests/unit/deploy/test_files.py")
    assert done.returncode == 0
    assert "test_files.py::test_a_port_in_use_is_told" in done.stdout


def test_the_bootstrap_needs_the_standard_library_only(tmp_path: Path) -> None:
    """An isolated interpreter without site-packages reaches the first check."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import deploy.__main__ as m;"
        "assert m.parser(); print(sorted(n for n in sys.modules if n.startswith('deploy')))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_a_link_leads_to_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "kept").touch()
    (tmp_path / ".venv").symlink_to(others)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    with pytest.raises(DeployError, match=r"\.venv is a link, .* remove the link and run"):
        environment.ensure_venv()
    assert [each.name for each in others.iterdir()] == ["kept"]
