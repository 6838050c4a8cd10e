"""Jars are judged by names and hashes."""

from pathlib import Path

import pytest

from deploy import jars
from deploy.environment import find_java, pyspark_jars
from deploy.errors import DeployError


def test_the_lock_names_what_the_platform_needs() -> None:
    wanted = jars.read_lock()
    assert set(wanted) == set(jars.SETS)
    assert len(wanted["connector"]) == 6
    assert len(wanted["broker"]) == 47
    assert "kafka_2.13-4.1.0.jar" in wanted["broker"]
    assert {"spark-sql-kafka-0-10_2.13-4.2.0.jar", "re2j-1.8.jar"} <= wanted["connector"].keys()
    assert all(len(digest) == 64 for jar_set in wanted.values() for digest in jar_set.values())


def test_the_lock_reads_back_as_it_was_written(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in jars.SETS}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / f"{name}-1.jar").write_text(name)
    jars.write_lock(folders, tmp_path / "lock")
    assert jars.read_lock(tmp_path / "lock") == {n: jars.hashes(f) for n, f in folders.items()}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"a": "1", "b": "2"}, ""),
        ({"a": "1"}, "missing: b"),
        ({"a": "1", "b": "2", "c": "3"}, "unexpected: c"),
        ({"a": "1", "b": "9"}, "other content: b"),
        ({"c": "1"}, "missing: a, b; unexpected: c"),
    ],
)
def test_difference(found: dict[str, str], said: str) -> None:
    assert jars.difference({"a": "1", "b": "2"}, found) == said


def test_an_empty_or_broken_cache_is_not_verified(tmp_path: Path) -> None:
    assert not jars.verified(tmp_path)


def test_a_fetch_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"fetching the .* jars failed .*run the command again"):
        jars.ensure(Path("/bin/false"), pyspark_jars(), tmp_path)
    with pytest.raises(DeployError, match=r"fetching the .* jars failed"):
        jars.ensure(Path("/nonexistent/java"), pyspark_jars(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["jars.lock"]


def test_a_fetch_that_brings_nothing_is_not_taken_for_success(tmp_path: Path) -> None:
    """Ivy has ended with 0 and files missing."""
    with pytest.raises(DeployError, match=r"not those of deploy/jars.lock \(missing: "):
        jars.ensure(Path("/bin/true"), pyspark_jars(), tmp_path)


def test_no_ivy(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="no Ivy jar"):
        jars.ensure(find_java(), tmp_path, tmp_path)
