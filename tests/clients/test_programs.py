"""The programs can be compiled, and docs/clients.md names the versions that they are run with."""

from __future__ import annotations

import json
import py_compile
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.environment import ROOT
from deploy.jars import read_lock
from tests.requirements import missing

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
DOCUMENT = (ROOT / "docs" / "clients.md").read_text()
# What has no pin here is pinned for the platform.
PINS = (ROOT / "constraints.txt").read_text() + (HERE / "requirements.txt").read_text()


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.name)
def test_a_python_program_can_be_compiled(program: Path, tmp_path: Path) -> None:
    py_compile.compile(str(program), str(tmp_path / "compiled"), doraise=True)


def test_the_node_program_can_be_compiled() -> None:
    if shutil.which("node") is None:
        missing("node")
    subprocess.run(["node", "--check", str(PROGRAMS / "kafkajs" / "reader.js")], check=True)


def versions() -> dict[str, str]:
    """The version of each client that the tests run, by its name in the document."""
    found = dict(re.findall(r"^([\w-]+)==(\S+)$", PINS, re.MULTILINE))
    node = json.loads((PROGRAMS / "kafkajs" / "package.json").read_text())["dependencies"]
    tools = next(jar for jar in read_lock()["broker"] if jar.startswith("kafka-tools-4"))
    kafka = tools.removeprefix("kafka-tools-").removesuffix(".jar")
    jars = (PROGRAMS / "flink.xml").read_text()
    flink = re.search(r'"flink-clients" rev="(.*?)"', jars)
    source = re.search(r'kafka" rev="(.*?)-', jars)
    assert flink is not None and source is not None
    return {
        "Flink": f"{flink[1]}, with its Kafka source {source[1]}",
        "Java console consumer": kafka,
        "Java KafkaConsumer": kafka,
        "Spark": found["pyspark"],
        "kafkajs": node["kafkajs"],
        **{name: found[name] for name in ("confluent-kafka", "kafka-python", "aiokafka")},
    }


@pytest.mark.parametrize(("name", "version"), versions().items())
def test_the_document_has_the_client_in_its_version(name: str, version: str) -> None:
    row = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| {name} |"))
    assert f"| {version} |" in row
