"""IncrementalAlterConfigs: changes one setting of topics."""

from __future__ import annotations

from collections.abc import Mapping

from secadmin.kafka.wire.connection import BrokerConnection
from secadmin.kafka.wire.encoding import Reader, int8, int32, string

_INCREMENTAL_ALTER_CONFIGS, _VERSION = 44, 0
_TOPIC, _SET, _DELETE = 2, 0, 1


def alter_setting(
    connection: BrokerConnection, name: str, values: Mapping[str, str | None]
) -> dict[str, int]:
    """Give the setting its value at each of the topics, or none. Gives Kafka's code by topic.

    Raises:
        OSError, ValueError: The broker did not answer, or its answer cannot be read.
    """
    body = int32(len(values))
    for topic, value in values.items():
        operation = _DELETE if value is None else _SET
        body += int8(_TOPIC) + string(topic) + int32(1)
        body += string(name) + int8(operation) + string(value)
    only_checked = int8(False)
    answer = connection.request(_INCREMENTAL_ALTER_CONFIGS, _VERSION, body + only_checked)
    return read_altered(answer, values)


def read_altered(answer: Reader, values: Mapping[str, str | None]) -> dict[str, int]:
    """The codes of an answer. Raises ValueError if a topic is missing."""
    answer.int32()
    codes = {}
    for _ in range(answer.int32()):
        code = answer.int16()
        answer.string(), answer.int8()
        codes[answer.string() or ""] = code
    if missing := values.keys() - codes.keys():
        raise ValueError(f"the broker says nothing of the topic {min(missing)}")
    return codes
