"""What an engine asks of a Spark cluster before it uses one."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.settings import ClusterSettings, SecFilterSettings
from secfilter.cluster import GONE_S, SHARED_KEY, Cluster, cluster_of
from secfilter.session import session_options
from secfilter.shipped_code import shipped_code

MASTER = "spark://head:7077"
TEXT = "ab" * 32


@pytest.fixture
def settings(tmp_path: Path) -> SecFilterSettings:
    secret = tmp_path / "cluster.secret"
    secret.touch(mode=0o600)
    secret.write_text(f"{TEXT}\n")
    own = ClusterSettings("engine-1", secret)
    return SecFilterSettings(MASTER, tmp_path, tmp_path, tmp_path / "id.key", cluster=own)


@pytest.fixture
def cluster(settings: SecFilterSettings, tmp_path: Path) -> Cluster:
    found = cluster_of(settings, 256, tmp_path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "master", [MASTER, "spark://one:7077,two:7077", "k8s://https://kubernetes:6443", "yarn"]
)
def test_a_cluster_has_encryption_and_its_own_number_of_tasks(
    cluster: Cluster, master: str
) -> None:
    options = session_options(master, None, {"spark.executor.memory": "3g"}, cluster)
    assert options["spark.authenticate"] == "true"
    assert options["spark.network.crypto.enabled"] == "true"
    assert options["spark.network.crypto.cipher"] == "AES/GCM/NoPadding"
    assert options["spark.io.encryption.enabled"] == "true"
    assert options["spark.cores.max"] == "512", "side runs have room beside all slots"
    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "engine-1"
    assert options["spark.executor.memory"] == "3g"


def test_executors_have_the_engines_jars_and_java_options(cluster: Cluster, tmp_path: Path) -> None:
    given = {"spark.executor.extraJavaOptions": "-XX:+UseG1GC"}
    options = session_options(MASTER, tmp_path, given, cluster)
    assert options["spark.executor.extraClassPath"] == f"{tmp_path}/*"
    own = options["spark.executor.extraJavaOptions"].split()
    assert own[0] == "-Xss16m" and "-XX:+UseG1GC" in own
    assert own[-1] == "-XX:+ExitOnOutOfMemoryError"


def test_the_secret_is_in_no_option_and_in_no_text(cluster: Cluster) -> None:
    assert cluster.secret == TEXT
    assert TEXT not in str(session_options(MASTER, None, {}, cluster)) + repr(cluster)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.authenticate", "false"),
        ("spark.network.crypto.enabled", "false"),
        ("spark.network.crypto.cipher", "AES/CTR/NoPadding"),
        ("spark.network.crypto.saslFallback", "true"),
        ("spark.io.encryption.enabled", "false"),
        ("spark.ui.enabled", "true"),
        ("spark.eventLog.enabled", "true"),
        ("spark.speculation", "true"),
        ("spark.task.maxFailures", "4"),
        ("spark.executor.heartbeat.maxFailures", "60"),
    ],
)
def test_what_protects_data_cannot_be_turned_off(cluster: Cluster, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} cannot be set"):
        session_options(MASTER, None, {name: value}, cluster)


def test_a_secret_is_no_option(cluster: Cluster) -> None:
    with pytest.raises(InvalidInput, match="put it into secret_file"):
        session_options(MASTER, None, {SHARED_KEY: TEXT}, cluster)


def test_an_executor_gives_up_before_it_counts_as_gone(cluster: Cluster) -> None:
    options = session_options(MASTER, None, {}, cluster)
    beat_s = int(options["spark.executor.heartbeatInterval"].removesuffix("s"))
    # It waits for each answer as long as for the next sign of life.
    assert beat_s * (int(options["spark.executor.heartbeat.maxFailures"]) + 1) < GONE_S


@pytest.mark.parametrize("master", ["spark://head", "spark://head:x", "k8s:kubernetes"])
def test_a_master_that_is_not_understood_is_refused(
    settings: SecFilterSettings, master: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="is not understood"):
        cluster_of(replace(settings, master=master), 256, tmp_path)


def test_a_cluster_needs_its_settings(settings: SecFilterSettings, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"write \[secfilter.cluster\] with host and secret"):
        cluster_of(replace(settings, cluster=None), 256, tmp_path)
    with pytest.raises(InvalidInput, match="lacks secret_file"):
        cluster_of(replace(settings, cluster=ClusterSettings("engine-1")), 256, tmp_path)
    with pytest.raises(InvalidInput, match=r"local\[4\] is none; leave it out"):
        cluster_of(replace(settings, master="local[4]"), 256, tmp_path)
    assert cluster_of(replace(settings, master="local[4]", cluster=None), 256, tmp_path) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_can_read_is_refused(
    settings: SecFilterSettings, mode: int, tmp_path: Path
) -> None:
    assert settings.cluster is not None and settings.cluster.secret_file is not None
    settings.cluster.secret_file.chmod(mode)
    with pytest.raises(InvalidInput, match="make it private: chmod 600"):
        cluster_of(settings, 256, tmp_path)


def test_a_secret_that_is_short_or_missing_is_refused(
    settings: SecFilterSettings, tmp_path: Path
) -> None:
    assert settings.cluster is not None and settings.cluster.secret_file is not None
    settings.cluster.secret_file.write_text("short")
    with pytest.raises(InvalidInput, match="shorter than 32 characters"):
        cluster_of(settings, 256, tmp_path)
    settings.cluster.secret_file.unlink()
    with pytest.raises(InvalidInput, match="cannot be read"):
        cluster_of(settings, 256, tmp_path)


def test_workers_get_the_packages_of_the_tasks(tmp_path: Path) -> None:
    with zipfile.ZipFile(shipped_code(tmp_path)) as archive:
        names = archive.namelist()
    assert {"catalog/__init__.py", "secfilter/moving.py", "secfilter/match.py"} <= set(names)
    assert all(name.split("/")[0] in {"catalog", "secfilter"} for name in names)
