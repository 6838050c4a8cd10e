"""The preparation of a broker's data folder, with its first SCRAM users already in it."""

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import PurePath

from deploy.broker_properties import SCRAM
from deploy.credentials import Credentials


def format_arguments(
    properties: PurePath, users: Iterable[Credentials], cluster: str | None = None
) -> list[str]:
    """Main class and arguments that format the storage; they hold the users' passwords.

    Args:
        properties: The broker's settings, which name its data folder.
        users: SCRAM users that can log in as soon as the broker runs.
        cluster: The id of the cluster of which the broker is one node; alone it needs none.
    """
    arguments = ["kafka.tools.StorageTool", "format"]
    arguments += [] if cluster else ["--standalone"]
    arguments += ["--cluster-id", cluster or new_cluster_id(), "--config", str(properties)]
    for user in users:
        arguments += ["--add-scram", f"{SCRAM}=[name={user.username},password={user.password()}]"]
    return arguments


def argument_file(arguments: Iterable[str]) -> str:
    """Text of an argument file of the java launcher, which keeps them from the process's own
    arguments: those can be read by everyone on the machine."""
    return "\n".join(map(_quoted, arguments))


def new_cluster_id() -> str:
    """A random id in Kafka's form: 16 bytes in base64, not starting with a dash (an option)."""
    while (text := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _quoted(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
