"""Spark's settings: what goes with the jars that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from py4j.protocol import REFLECTION_COMMAND_NAME
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from catalog.errors import InvalidInput
from deploy.runtime import ensure_runtime
from secfilter.class_archive import archive_of, writing
from secfilter.cluster import Cluster
from secfilter.engine_process import engine_process
from secfilter.session import _NOISE, session_options, with_reserve

_FILES = "spark.hadoop.fs.file.impl"
_JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "hadoop-bare-naked-local-fs-1.0.jar").touch()
    return tmp_path


def test_a_local_engine_sets_modes_without_a_process(jars: Path) -> None:
    options = session_options("local[2]", jars)
    assert options["spark.driver.extraClassPath"] == f"{jars}/*"
    assert options[_FILES].endswith("NakedLocalFileSystem")


def test_without_that_jar_hadoop_does_it(tmp_path: Path) -> None:
    assert session_options("local[2]", tmp_path)[_FILES].endswith("RawLocalFileSystem")
    assert session_options("local[2]", None)[_FILES].endswith("RawLocalFileSystem")


@pytest.mark.parametrize(
    "master", ["spark://head:7077", "yarn", "local-cluster[2,1,512]", "local[2,3]"]
)
def test_a_cluster_without_its_settings_is_refused(master: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not supported; use a local one"):
        session_options(master, None)


@pytest.mark.parametrize("master", ["local[4]", "local-cluster[2,1,512]"])
def test_a_cluster_has_the_master_of_one(master: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not supported"):
        session_options(master, None, {}, Cluster("engine-1", 256, tmp_path))


@pytest.mark.parametrize(
    ("master", "found"),
    [("local[256]", "local[512]"), ("local[*]", "local[*]"), ("local", "local"), ("x", "x")],
)
def test_side_runs_have_room_beside_all_slots(master: str, found: str) -> None:
    assert with_reserve(master) == found


def test_the_engine_is_closed_to_other_machines_and_collects_in_parallel() -> None:
    options = session_options("local[2]", None)
    assert options["spark.driver.bindAddress"] == "127.0.0.1"
    collector = "-XX:+UseParallelGC -XX:-UsePSAdaptiveSurvivorSizePolicy"
    process = "-Xss16m -XX:-DontCompileHugeMethods"
    assert options[_JAVA] == f"{process} {collector} -XX:+ExitOnOutOfMemoryError"


def test_an_engine_without_memory_ends_whatever_java_options_are_given() -> None:
    given = {_JAVA: "-XX:+UseG1GC -XX:-ExitOnOutOfMemoryError"}
    options = session_options("local[2]", None, given)[_JAVA].split()
    assert options[0] == "-Xss16m" and options[-1] == "-XX:+ExitOnOutOfMemoryError"
    assert "-XX:+UseG1GC" in options and "-XX:+UseParallelGC" not in options


def test_an_archive_of_classes_is_used_where_there_is_one(jars: Path) -> None:
    assert "Archive" not in session_options("local[2]", jars)[_JAVA]
    archive_of(jars).touch()
    assert f'-XX:SharedArchiveFile="{archive_of(jars)}"' in session_options("local[2]", jars)[_JAVA]
    new = jars / "new.jsa"
    made = session_options("local[2]", jars, archive=writing(new))[_JAVA]
    assert f'-XX:ArchiveClassesAtExit="{new}"' in made and "SharedArchiveFile" not in made


def test_spark_takes_its_classes_from_the_archive(spark: SparkSession) -> None:
    maps = Path(f"/proc/{engine_process(spark).pid}/maps").read_text()
    archive = str(archive_of(ensure_runtime().jars.connector))
    modes = {line.split()[1] for line in maps.splitlines() if line.endswith(archive)}
    # Where Java has to change its addresses, all of it can be written to, and is no one else's.
    assert "r--p" in modes


def test_a_function_of_spark_is_looked_up_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    send: Any = GatewayClient.send_command

    def noted(client: GatewayClient, command: str, *args: Any, **options: Any) -> Any:
        asked.append(command)
        return send(client, command, *args, **options)

    _use_functions()
    monkeypatch.setattr(GatewayClient, "send_command", noted)
    _use_functions()
    assert any("functions\nupper" in each for each in asked)
    assert not [each for each in asked if each.startswith(REFLECTION_COMMAND_NAME)]


def _use_functions() -> None:
    fn.upper(fn.coalesce(fn.col("a"), fn.lit("b")))


def test_what_is_given_goes_over_the_defaults(jars: Path) -> None:
    assert session_options("local[2]", jars, {_FILES: "mine"})[_FILES] == "mine"


@pytest.mark.parametrize("name", ["spark.sql.session.timeZone", "spark.sql.ansi.enabled"])
def test_what_a_query_means_cannot_be_set(name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        session_options("local[2]", None, {name: "Asia/Tokyo"})


def test_what_nobody_can_do_anything_about_is_not_in_the_log(spark: SparkSession) -> None:
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in _NOISE:
        assert str(log4j.LogManager.getLogger(name).getLevel()) == "ERROR"
    assert str(log4j.LogManager.getLogger("org.apache.spark").getLevel()) == "WARN"
    for name in _NOISE[:2]:
        assert spark._jvm.java.lang.Class.forName(name + "$") is not None  # type: ignore[union-attr]
