"""Kafka's console consumer and producer, run from the fetched jars with the files of an access."""

from __future__ import annotations

from pathlib import Path

from deploy.runtime import Runtime
from secadmin.cli.kafka.access_folder import JAVA, read_description

_TOOLS = "org.apache.kafka.tools"


def console_command(runtime: Runtime, folder: Path, arguments: list[str]) -> list[str]:
    """The command for the access in the folder: a consumer, or a producer for a sender's.

    The consumer prints headers, too. `arguments` are further ones of Kafka's tool.

    Raises:
        InvalidInput: The folder is not one that secadmin wrote, or others can write to it.
    """
    described = read_description(folder)
    settings = str(folder / JAVA)
    if "group_prefix" not in described:
        tool, what = f"{_TOOLS}.ConsoleProducer", ["--topic", described["topic"]]
        own = ["--producer.config", settings]
    else:
        by_pattern = "topic_pattern" in described
        tool = f"{_TOOLS}.consumer.ConsoleConsumer"
        what = ["--include" if by_pattern else "--topic"]
        what += [described["topic_pattern" if by_pattern else "topic"]]
        own = ["--consumer.config", settings, "--property", "print.headers=true"]
    java = [str(runtime.java), "-cp", f"{runtime.jars.broker}/*", tool]
    return [*java, "--bootstrap-server", described["bootstrap"], *what, *own, *arguments]
