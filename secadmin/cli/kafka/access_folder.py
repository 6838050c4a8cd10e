"""The folder with the files of an access, for any Kafka client and for `consume`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from catalog.private_file import write_private
from secadmin.cli.kafka.access import Access
from secadmin.cli.kafka.access_readme import readme
from secadmin.cli.kafka.client_settings import (
    LIBRDKAFKA_NAMES,
    java_settings,
    librdkafka_file,
    parse_librdkafka_file,
    properties_file,
)
from secadmin.cli.private_files import check_own

JAVA, LIBRDKAFKA, CA, README = "client.properties", "librdkafka.conf", "ca.pem", "README.txt"
_READER, _SENDER = "subscription.json", "sender.json"
_UNUSABLE = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
_FILES = (JAVA, LIBRDKAFKA, CA, README, _READER, _SENDER)


@dataclass(frozen=True, slots=True)
class AccessFolder:
    """The parts of a folder that `consume` needs: librdkafka settings and the topics."""

    principal: str
    kind: str
    name: str
    subscription: str
    group_prefix: str
    settings: dict[str, str] = field(repr=False)


def write_access_folder(folder: Path, access: Access) -> None:
    """Write the files, each with mode 0600, into a private folder that exists."""
    ca = folder.resolve() / CA
    described = json.dumps(_describe(access), indent=2) + "\n"
    write_private(folder / CA, access.ca_pem)
    write_private(folder / JAVA, properties_file(java_settings(access)))
    write_private(folder / LIBRDKAFKA, librdkafka_file(access, ca))
    write_private(folder / README, readme(access))
    # Last, because only this file makes the folder readable for us.
    write_private(folder / (_SENDER if access.writes else _READER), described)


def _describe(access: Access) -> dict[str, Any]:
    """The description of the access, without the secret."""
    described = {
        "kind": access.kind,
        "name": access.name,
        "principal": access.principal,
        "bootstrap": access.bootstrap,
        "group_prefix": access.group_prefix,
        "group": access.group,
        "topic": access.topic,
        "topic_pattern": access.topic_pattern,
    }
    return {name: value for name, value in described.items() if value is not None}


def is_access_folder(folder: Path) -> bool:
    """Say whether the folder has the files of an access."""
    return any((folder / name).is_file() for name in (_READER, _SENDER))


def read_subscription(folder: Path) -> AccessFolder:
    """Read the files of `subscribe` or `quarantine`. Raises InvalidInput, also if others may change
    them.

    Only the name says which folder to read, so somebody else may have made it.
    """
    try:
        for path in (folder, *(folder / name for name in (_READER, LIBRDKAFKA, CA))):
            check_own(path)
        described = json.loads((folder / _READER).read_text(encoding="utf-8"))
        settings = _settings(folder / LIBRDKAFKA)
        return AccessFolder(
            principal=described["principal"],
            kind=described["kind"],
            name=described["name"],
            subscription=described.get("topic_pattern") or described["topic"],
            group_prefix=described["group_prefix"],
            # The folder may have been moved in the meantime.
            settings={**settings, "ssl.ca.location": str(folder.resolve() / CA)},
        )
    except _UNUSABLE:
        raise InvalidInput(
            f"{folder} is not a folder that subscribe wrote; make one: "
            "secadmin subscribe OUTPUT --dir DIR"
        ) from None


def _settings(file: Path) -> dict[str, str]:
    settings = parse_librdkafka_file(file.read_text(encoding="utf-8"))
    for name in settings:
        if name not in LIBRDKAFKA_NAMES:
            raise InvalidInput(
                f"{file} sets {name[:80]!r}, which subscribe does not write; "
                "delete that line, or use another client: kcat -F"
            )
    return settings


def read_description(folder: Path) -> dict[str, str]:
    """The description of the access in the folder, without the secret. Java's settings need it.

    Raises InvalidInput, also if others may change the files: settings of Java can run code.
    """
    for name in (_READER, _SENDER):
        if (folder / name).is_file():
            for path in (folder, folder / name, folder / JAVA):
                check_own(path)
            try:
                described = json.loads((folder / name).read_text(encoding="utf-8"))
                return {str(key): str(value) for key, value in described.items()}
            except _UNUSABLE:
                break
    raise InvalidInput(f"{folder} is not a folder that secadmin wrote")


def principal_in(folder: Path) -> str:
    """The principal of the access in the folder. Raises InvalidInput."""
    for name in (_READER, _SENDER):
        if (folder / name).is_file():
            try:
                return str(json.loads((folder / name).read_text(encoding="utf-8"))["principal"])
            except _UNUSABLE:
                break
    raise InvalidInput(f"{folder} is not a folder that secadmin wrote; name the principal")


def remove_access_files(folder: Path) -> None:
    """Delete the files of the access, and the folder too if nothing else is in it."""
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
