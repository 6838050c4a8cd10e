"""The snapshot with which a broker's metadata begin, completed by its first SCRAM users.

Kafka (4.0 to 4.4) loses all SCRAM users when it replays its metadata log from a snapshot without
any, and meets the removal of one before it has seen another (`ScramDelta.apply`). The storage
tool leaves the first users beside the log, to become its first records, and makes a snapshot at
offset 0 that has the voters alone. With the first users in that snapshot, too, no replay begins
without any; Kafka's own later snapshots have them as well, for the platform never removes them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.private_file import write_private
from deploy.errors import DeployError

_SNAPSHOT = Path("__cluster_metadata-0") / "00000000000000000000-0000000000.checkpoint"
_FIRST_RECORDS = Path("bootstrap.checkpoint")
# Of a record batch: first offset and length of the rest; attributes and last offset of its own.
_HEAD, _ATTRIBUTES = struct.Struct(">qi"), struct.Struct(">hi")
_ATTRIBUTES_AT = 21
_CONTROL = 0x20


@dataclass(frozen=True)
class _Batch:
    """A record batch; its check sum does not cover the first offset, which may thus be changed."""

    offset: int
    count: int
    control: bool
    rest: bytes

    def render(self) -> bytes:
        return _HEAD.pack(self.offset, len(self.rest)) + self.rest


def complete_first_snapshot(data: Path) -> None:
    """Put the first records into the snapshot at offset 0, where it is there and has none.

    Args:
        data: The data folder of a formatted broker that does not run.

    Raises:
        DeployError: One of the files is damaged.
    """
    snapshot = data / _SNAPSHOT
    if not snapshot.exists():
        # Kafka has made a later one, with all users.
        return
    *head, end = _batches(snapshot)
    if any(not batch.control for batch in head):
        return
    first = [batch for batch in _batches(data / _FIRST_RECORDS) if not batch.control]
    offset = 0
    text = b""
    for batch in (*head, *first, end):
        text += replace(batch, offset=offset).render()
        offset += batch.count
    write_private(snapshot, text)


def _batches(file: Path) -> list[_Batch]:
    try:
        found = list(_split(file.read_bytes()))
    except struct.error as error:
        raise DeployError(f"the broker's file {file} is damaged: {error}") from error
    if not found:
        raise DeployError(f"the broker's file {file} is damaged: it is empty")
    return found


def _split(text: bytes) -> Iterator[_Batch]:
    at = 0
    while at < len(text):
        offset, length = _HEAD.unpack_from(text, at)
        attributes, last = _ATTRIBUTES.unpack_from(text, at + _ATTRIBUTES_AT)
        end = at + _HEAD.size + length
        if length <= 0 or end > len(text):
            raise struct.error("a record batch is cut off")
        rest = text[at + _HEAD.size : end]
        yield _Batch(offset, last + 1, bool(attributes & _CONTROL), rest)
        at = end
