"""The wheel, of which the image is made, has all that the parts of a cluster run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.cluster_files import Hosts, write_cluster
from deploy.environment import ROOT
from tests.waiting import wait_until
from tests.wheel import PACKAGES, build_wheel, pip

# What builds it is fetched.
pytestmark = [pytest.mark.long]

START_S = 60.0
# Files for operators, which stay in the repository.
LEFT_OUT = ROOT / "deploy" / "cluster"
TABLES = """
from catalog.migrations import upgrade
from catalog.store import Catalog
upgrade(Catalog("sqlite:///catalog.db").engine)
"""
JARS = "from deploy.runtime import ensure_runtime as e; print(e().jars.connector)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as docs/cluster.md says, and installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = build_wheel(folder / "source")
    pip("install", "--no-deps", "--target", str(folder / "there"), str(wheel), folder=folder)
    return folder / "there"


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with what is installed, where nothing of the repository is."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment(installed), capture_output=True, text=True, check=False
    )


def environment(installed: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(installed)}


def test_it_has_each_file_of_the_packages(installed: Path) -> None:
    expected = {
        file.relative_to(ROOT)
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and LEFT_OUT not in file.parents
    }
    assert expected - {file.relative_to(installed) for file in installed.rglob("*")} == set()


def test_its_tables_and_jars_are_made_of_it_alone(installed: Path, tmp_path: Path) -> None:
    for code in (TABLES, JARS):
        done = run(installed, tmp_path, "-c", code)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "catalog.db").is_file()
    where = run(installed, tmp_path, "-c", "import catalog; print(catalog.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(installed)


@pytest.mark.parametrize(
    ("module", "part", "more", "told"),
    [
        ("secadmin", "secadmin-1", (), "cannot be reached"),
        ("secfilter", "query", ("--engine", "query-1"), "cannot be reached"),
        ("secfilter", "query", ("--engine", "query-9"), "there is no engine 'query-9'"),
    ],
)
def test_a_part_starts_with_its_settings(
    installed: Path, tmp_path: Path, module: str, part: str, more: tuple[str, ...], told: str
) -> None:
    """It comes as far as its database, which is not here."""
    write_cluster(tmp_path / "cluster", Hosts(postgresql=("127.0.0.1", "localhost")))
    settings = tmp_path / "cluster" / part / "settings.toml"
    text = settings.read_text().replace("/etc/secure-streams", str(settings.parent))
    settings.write_text(text.replace("/var/lib/secure-streams", str(tmp_path / "data")))
    (tmp_path / "data").mkdir(mode=0o700)
    command = [sys.executable, "-m", module, "--settings", str(settings), *more]
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(installed), stdout=written, stderr=written
        )
    try:
        wait_until(lambda: told in log.read_text(), f"it says {told}", START_S)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text()
