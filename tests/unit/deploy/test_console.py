"""Kafka's console tools with the files of an access."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from deploy.console import console_command
from deploy.jars import JarFolders
from deploy.runtime import Runtime
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_folder import write_access_folder

RUNTIME = Runtime(Path("/java"), JarFolders(Path("/connector"), Path("/broker")))
READER = Access(
    kind="output",
    name="alerts",
    principal="output-0a1b",
    secret="the secret",
    bootstrap="localhost:9093",
    ca_pem="a certificate\n",
    group_prefix="output-0a1b.",
    topic_pattern=r"^out\.alerts\..*",
)
QUARANTINE = replace(READER, topic_pattern=None, topic="quarantine.in1")
SENDER = replace(READER, group_prefix=None, topic_pattern=None, topic="in.in1")
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "access"
    made.mkdir(mode=0o700)
    return made


@pytest.mark.parametrize(
    ("access", "tool", "topic"),
    [
        (READER, CONSUMER, ["--include", r"^out\.alerts\..*"]),
        (QUARANTINE, CONSUMER, ["--topic", "quarantine.in1"]),
        (SENDER, PRODUCER, ["--topic", "in.in1"]),
    ],
    ids=["subscription", "quarantine", "sender"],
)
def test_the_command_is_made_of_the_folder(
    folder: Path, access: Access, tool: str, topic: list[str]
) -> None:
    write_access_folder(folder, access)
    command = console_command(RUNTIME, folder, ["--timeout-ms", "1"])
    kind = "consumer" if tool == CONSUMER else "producer"
    start = ["/java", "-cp", "/broker/*", tool, "--bootstrap-server", "localhost:9093", *topic]
    assert command[:8] == start
    assert command[8:10] == [f"--{kind}.config", str(folder / "client.properties")]
    assert command[-2:] == ["--timeout-ms", "1"]
    assert "the secret" not in " ".join(command)


def test_another_folder_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="not a folder that secadmin wrote"):
        console_command(RUNTIME, folder, [])
    (folder / "subscription.json").write_text("[]")
    (folder / "subscription.json").chmod(0o600)
    (folder / "client.properties").touch(mode=0o600)
    with pytest.raises(InvalidInput, match="not a folder that secadmin wrote"):
        console_command(RUNTIME, folder, [])


@pytest.mark.parametrize("name", [".", "subscription.json", "client.properties"])
def test_files_that_others_can_write_to_are_refused(folder: Path, name: str) -> None:
    """Java's settings can name code to run."""
    write_access_folder(folder, READER)
    (folder / name).chmod((folder / name).stat().st_mode | 0o020)
    with pytest.raises(InvalidInput, match="others can write"):
        console_command(RUNTIME, folder, [])
