"""The folder that an access is written to, for any Kafka client, and read from by ours."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from secadmin.cli.access import Access
from secadmin.cli.access_readme import readme
from secadmin.cli.kafka_settings import (
    LIBRDKAFKA_NAMES,
    java_settings,
    librdkafka_file,
    parse_librdkafka_file,
    properties_file,
)
from secadmin.cli.private_files import check_own, write_private

JAVA, LIBRDKAFKA, CA, README = "client.properties", "librdkafka.conf", "ca.pem", "README.txt"
_READER, _SENDER = "subscription.json", "sender.json"
_UNUSABLE = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
_FILES = (JAVA, LIBRDKAFKA, CA, README, _READER, _SENDER)


@dataclass(frozen=True, slots=True)
class AccessFolder:
    """What a client of ours needs of a folder: librdkafka settings and what to subscribe to."""

    principal: str
    kind: str
    name: str
    subscription: str
    group_prefix: str
    settings: dict[str, str] = field(repr=False)


def write_access_folder(folder: Path, access: Access) -> None:
    """Write the files, 0600 each, into a private folder that is there already."""
    ca = folder.resolve() / CA
    described = json.dumps(_describe(access), indent=2) + "\n"
    write_private(folder / CA, access.ca_pem)
    write_private(folder / JAVA, properties_file(java_settings(access)))
    write_private(folder / LIBRDKAFKA, librdkafka_file(access, ca))
    write_private(folder / README, readme(access))
    # Last, because it makes the folder one that can be read back.
    write_private(folder / (_SENDER if access.writes else _READER), described)


def _describe(access: Access) -> dict[str, Any]:
    """All but the secret."""
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
    """Whether an access was written there."""
    return any((folder / name).is_file() for name in (_READER, _SENDER))


def read_subscription(folder: Path) -> AccessFolder:
    """What `subscribe` or `quarantine` wrote. Raises InvalidInput, also where it may be changed.

    A folder is taken for its name alone, so it may be one that somebody else has laid out.
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
            # The folder may have been moved since.
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
    """What the access in the folder says of itself, all but the secret; for Java's settings there.

    Raises InvalidInput, also where others may change the files: settings of Java can run code.
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
    """The principal of the access that was written there. Raises InvalidInput."""
    for name in (_READER, _SENDER):
        if (folder / name).is_file():
            try:
                return str(json.loads((folder / name).read_text(encoding="utf-8"))["principal"])
            except _UNUSABLE:
                break
    raise InvalidInput(f"{folder} is not a folder that secadmin wrote; name the principal")


def remove_access_files(folder: Path) -> None:
    """Delete the files that were written, and the folder when nothing else is in it."""
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
