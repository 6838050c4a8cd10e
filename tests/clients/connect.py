"""A worker of Kafka Connect by itself, which sends the lines of a file to a sender's topic."""

from __future__ import annotations

from pathlib import Path

from deploy.ports import free_port
from deploy.runtime import Runtime
from secadmin.cli.kafka.access_folder import JAVA
from tests.clients.java import fetched_jars

_TEXT = "org.apache.kafka.connect.storage.StringConverter"
_CLASSES = "org.apache.kafka.connect"


def connect_command(
    runtime: Runtime, folder: Path, topic: str, lines: Path, home: Path
) -> list[str]:
    """The command of the worker. Its settings and its offsets are in files of the folder `home`.

    What it takes for itself of the sender's files, it takes for its producers, too.
    """
    access = dict(
        line.split("=", 1) for line in (folder / JAVA).read_text().splitlines() if "=" in line
    )
    worker = {
        **access,
        **{f"producer.{name}": value for name, value in access.items()},
        "key.converter": _TEXT,
        "value.converter": _TEXT,
        "offset.storage.file.filename": str(home / "offsets"),
        "topic.creation.enable": "false",
        "plugin.discovery": "only_scan",
        "listeners": f"http://127.0.0.1:{free_port()}",
    }
    connector = {
        "name": "lines",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(lines),
        "topic": topic,
    }
    files = [_written(home / "worker.properties", worker)]
    files.append(_written(home / "connector.properties", connector))
    path = f"{fetched_jars(runtime, 'connect', home)}/*"
    java = [str(runtime.java), "-Xmx256m", "-cp", path]
    return [*java, f"{_CLASSES}.cli.ConnectStandalone", *map(str, files)]


def _written(file: Path, properties: dict[str, str]) -> Path:
    file.touch(mode=0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file
