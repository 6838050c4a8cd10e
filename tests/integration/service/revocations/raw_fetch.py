"""Fetch requests as a hostile client may send them, with whatever limits it likes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from catalog.settings import KafkaAccount, KafkaSettings
from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32, int64, string

OFFSET_OUT_OF_RANGE = 1
TOPIC_AUTHORIZATION_FAILED = 29

_FETCH, _VERSION = 1, 11
_MOST_BYTES = 8 * 1024 * 1024
_BATCH_HEAD, _LAST_OFFSET_AT = 12, 23


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How long the broker may keep the fetch, and how many bytes release it earlier."""

    wait_ms: int
    min_bytes: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer: Kafka's error code, the records as they came, and where to go on."""

    error: int
    records: bytes
    next_offset: int


def connect(settings: KafkaSettings, credentials: Credentials, folder: Path) -> BrokerConnection:
    """A new connection, logged in as that principal. Raises Unavailable where it is refused."""
    file = folder / credentials.username
    if not file.exists():
        file.write_text(credentials.password)
    # Any of several brokers: each has a replica.
    host, _, port = settings.users_bootstrap.partition(",")[0].rpartition(":")
    as_it = replace(settings, secadmin=KafkaAccount(credentials.username, file))
    return BrokerConnection(BrokerAddress(host, int(port)), as_it)


def send_fetch(connection: BrokerConnection, topic: str, offset: int, limits: FetchLimits) -> None:
    """Ask for records of partition 0 from the offset on."""
    none, nothing, consumer = int32(-1), int64(-1), int32(-1)
    partition = int32(0) + none + int64(offset) + nothing + int32(_MOST_BYTES)
    session = int8(0) + int32(0) + none
    connection.send(
        _FETCH,
        _VERSION,
        consumer
        + int32(limits.wait_ms)
        + int32(limits.min_bytes)
        + int32(_MOST_BYTES)
        + session
        + (int32(1) + string(topic) + int32(1) + partition)
        + int32(0)
        + string(""),
    )


def read_fetch(answer: Reader, offset: int) -> Fetched:
    """Read the answer to a fetch from `offset` on."""
    answer.int32()
    error = answer.int16()
    answer.int32()
    if error or answer.int32() != 1:
        return Fetched(error, b"", offset)
    answer.string()
    assert (answer.int32(), answer.int32()) == (1, 0)
    error = answer.int16()
    for _ in range(3):
        answer.int64()
    for _ in range(max(0, answer.int32())):
        answer.int64()
        answer.int64()
    answer.int32()
    records = answer.octets()
    return Fetched(error, records, max(offset, _after(records)))


def _after(records: bytes) -> int:
    """The offset behind the last whole batch."""
    at, after = 0, 0
    while at + _BATCH_HEAD <= len(records):
        base = int.from_bytes(records[at : at + 8])
        size = _BATCH_HEAD + int.from_bytes(records[at + 8 : at + _BATCH_HEAD])
        if at + size > len(records):
            break
        last = at + _LAST_OFFSET_AT
        after = base + int.from_bytes(records[last : last + 4]) + 1
        at += size
    return after
