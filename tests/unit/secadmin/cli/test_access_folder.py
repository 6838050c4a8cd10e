"""The folder that subscribe writes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from catalog.errors import InvalidInput, PlatformError
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_folder import (
    principal_in,
    read_subscription,
    remove_access_files,
    write_access_folder,
)
from secadmin.cli.kafka.client_settings import (
    java_settings,
    librdkafka_settings,
    parse_librdkafka_file,
)
from secadmin.cli.private_files import new_private_folder
from tests.unit.secadmin.cli.conftest import SECRET
from tests.unit.secadmin.cli.service import CA


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return new_private_folder(tmp_path / "d")


def properties(path: Path) -> dict[str, str]:
    """A Java properties file as Java reads it, for what these hold."""
    pairs = (line.split("=", 1) for line in path.read_text().splitlines())
    unescaped = {k: v.replace("\\\\", "\0").replace("\\n", "\n") for k, v in pairs}
    return {name: value.replace("\0", "\\") for name, value in unescaped.items()}


def test_all_files_are_private(
    folder: Path, reader: Access, modes: Callable[[Path], dict[str, str]]
) -> None:
    write_access_folder(folder, reader)
    files = ("client.properties", "librdkafka.conf", "ca.pem", "README.txt", "subscription.json")
    assert modes(folder) == {".": "0o700"} | dict.fromkeys(files, "0o600")


def test_the_secret_is_where_clients_need_it_and_nowhere_else(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    java = properties(folder / "client.properties")
    assert 'password="S3cret\\"with\\\\odd=#characters";' in java["sasl.jaas.config"]
    rdkafka = parse_librdkafka_file((folder / "librdkafka.conf").read_text())
    assert rdkafka["sasl.password"] == SECRET
    for name in ("README.txt", "subscription.json", "ca.pem"):
        assert "S3cret" not in (folder / name).read_text()


def test_java_settings(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    java = properties(folder / "client.properties")
    assert java.pop("sasl.jaas.config").startswith(
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="output-0a1b" '
    )
    assert java == {
        "bootstrap.servers": "localhost:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CA.rstrip("\n"),
        "metadata.max.age.ms": "1000",
        "group.id": "output-0a1b.main",
        "group.protocol": "classic",
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "earliest",
    }


def test_librdkafka_knows_every_setting(reader: Access, writer: Access) -> None:
    """The library refuses what it does not know."""
    Consumer(librdkafka_settings(reader)).close()
    Producer(librdkafka_settings(writer))
    assert librdkafka_settings(reader)["topic.metadata.refresh.interval.ms"] == "1000"
    assert "group.id" not in librdkafka_settings(writer)


def test_a_sender_leaves_a_broker_that_hangs_and_sends_nothing_twice(writer: Access) -> None:
    java, others = java_settings(writer), librdkafka_settings(writer)
    # A stream may call late what is older than a minute.
    assert int(java["request.timeout.ms"]) == int(others["socket.timeout.ms"]) <= 10_000
    assert {each["enable.idempotence"] for each in (java, others)} == {"true"}
    # A transaction must last longer than that, as it does.
    Producer({**others, "transactional.id": f"{writer.principal}.one"})


def test_the_description_tells_what_to_read(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    assert json.loads((folder / "subscription.json").read_text()) == {
        "kind": "output",
        "name": "alerts",
        "principal": "output-0a1b",
        "bootstrap": "localhost:9093",
        "group_prefix": "output-0a1b.",
        "group": "output-0a1b.main",
        "topic_pattern": r"^out\.alerts\..*",
    }


def test_the_readme_names_the_clients_and_the_fence(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    readme = (folder / "README.txt").read_text()
    for part in ("kcat -F", "KafkaConsumer", "confluent-kafka", '"fence"', reader.subscription):
        assert part in readme
    assert "{" not in readme.replace("{}", "")


def test_the_readme_says_what_each_client_does_at_a_change(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    readme = (folder / "README.txt").read_text()
    for part in (
        "python3 -m deploy console DIR",
        "TopicAuthorizationException",
        "librdkafka 2.6.1 or later",
        "cannot log in",
        "session.timeout.ms=6000",
        "TOPIC_AUTHORIZATION_FAILED",
        *("  kafka-python ", "  aiokafka ", "  kafkajs ", "  Spark ", "  Flink "),
        "docs/clients.md",
    ):
        assert part in readme
    assert max(map(len, readme.splitlines())) <= 110


def test_a_senders_folder(folder: Path, writer: Access) -> None:
    write_access_folder(folder, writer)
    readme = (folder / "README.txt").read_text()
    for part in ("in.in1", "python3 -m deploy console DIR <", "cannot log in"):
        assert part in readme
    assert json.loads((folder / "sender.json").read_text())["topic"] == "in.in1"
    assert principal_in(folder) == "send-0a1b"
    with pytest.raises(InvalidInput, match="not a folder that subscribe wrote"):
        read_subscription(folder)


def test_a_moved_folder_is_read_with_its_own_ca(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    moved = folder.rename(folder.with_name("moved"))
    read = read_subscription(moved)
    assert read.settings["ssl.ca.location"] == str(moved / "ca.pem")
    assert read.subscription == reader.topic_pattern
    assert "S3cret" not in repr(read)


@pytest.mark.parametrize("name", [".", "subscription.json", "librdkafka.conf", "ca.pem"])
def test_what_others_can_write_to_is_not_read(folder: Path, reader: Access, name: str) -> None:
    write_access_folder(folder, reader)
    path = folder / name
    closed = path.stat().st_mode & 0o777
    for mode in (0o020, 0o002):
        path.chmod(closed | mode)
        with pytest.raises(InvalidInput, match=f"others can write .* chmod {closed:o} "):
            read_subscription(folder)
    path.chmod(closed)
    assert read_subscription(folder).principal == reader.principal


@pytest.mark.parametrize("name", [".", "subscription.json", "librdkafka.conf", "ca.pem"])
def test_what_is_somebody_elses_is_not_read(
    folder: Path, reader: Access, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_access_folder(folder, reader)
    own, stat = folder / name, Path.stat

    def stranger(path: Path, **options: bool) -> os.stat_result:
        status = stat(path, **options)
        uid = status.st_uid + (path == own)
        return os.stat_result((*status[:4], uid, *status[5:10]))

    monkeypatch.setattr(Path, "stat", stranger)
    with pytest.raises(InvalidInput, match="belongs to somebody else"):
        read_subscription(folder)


@pytest.mark.parametrize("name", ["plugin.library.paths", "sasl.kerberos.kinit.cmd", "debug"])
def test_a_setting_that_subscribe_does_not_write_is_refused(
    folder: Path, reader: Access, name: str
) -> None:
    write_access_folder(folder, reader)
    with (folder / "librdkafka.conf").open("a") as file:
        file.write(f"# mine\n{name}=x\n")
    with pytest.raises(InvalidInput, match=f"librdkafka.conf sets '{name}'.* delete that line"):
        read_subscription(folder)


@pytest.mark.parametrize("bootstrap", ["localhost:9093", "kafka.example:9093"])
def test_every_setting_that_is_written_is_taken(
    folder: Path, reader: Access, bootstrap: str
) -> None:
    access = replace(reader, bootstrap=bootstrap)
    write_access_folder(folder, access)
    ca = {"ssl.ca.location": str(folder / "ca.pem")}
    assert read_subscription(folder).settings == librdkafka_settings(access) | ca


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "nothing"])
def test_a_description_that_is_none_is_told(folder: Path, reader: Access, content: str) -> None:
    write_access_folder(folder, reader)
    (folder / "subscription.json").write_text(content)
    with pytest.raises(InvalidInput, match="not a folder that subscribe wrote"):
        read_subscription(folder)
    with pytest.raises(InvalidInput, match="not a folder that secadmin wrote"):
        principal_in(folder)


def test_removal_takes_our_files_and_no_others(folder: Path, reader: Access) -> None:
    write_access_folder(folder, reader)
    (folder / "mine.txt").touch()
    remove_access_files(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    remove_access_files(folder)
    assert not folder.exists()


ANSWER = {
    "kind": "output",
    "principal": "p",
    "secret": "s",
    "bootstrap": "localhost:1",
    "ca_pem": CA,
    "group_prefix": "p.",
    "topic_pattern": "^out",
}


def test_an_answer_becomes_an_access() -> None:
    access = Access.of_answer("alerts", ANSWER)
    assert (access.name, access.group, access.writes) == ("alerts", "p.main", False)
    assert "secret" not in repr(access)


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret": "x\nsecurity.protocol=PLAINTEXT"},
        {"bootstrap": "a\rb"},
        {"topic": 3},
        {"principal": ""},
        {"ca_pem": None},
    ],
)
def test_an_answer_that_would_add_settings_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlatformError):
        Access.of_answer("alerts", {**ANSWER, **wrong})
