"""The names of topics and of the headers on their records."""

from __future__ import annotations

LABEL_HEADER = "label"
SENDER_HEADER = "sender"
ID_HEADER = "id"
FENCE_HEADER = "fence"
REASON_HEADER = "reason"
ROLES_HEADER = "roles"
"""On a parked record: its role expression."""
TAKEN_HEADER = "timestamp"
"""When the broker took a record that was moved to another topic (ms since 1970)."""

LABELLED_RETENTION_MS = 7 * 24 * 60 * 60 * 1000
"""How long lab topics are kept. So a query may be stopped for this long without missing tuples."""

WIRE_VERSION = 3
"""The version of the records in lab.*. A record of another version is not read."""

TUPLE_HEADER = f"tuple-{WIRE_VERSION}"
"""The header of a tuple in lab.*, which has no other: its label, and `;` and a stream's sender."""

TICK_HEADER = f"tick-{WIRE_VERSION}"
"""The header of a tick in lab.*, which moves the time of a relation and is no tuple."""

LEFT_OUT_HEADER = "left-out"
"""On a record without key and value: a tuple that a query left out, because its state is full.

It also has the header of fences, so that clients skip it.
"""

ROW_VERSION_HEADER = "row-version"
"""The version of an upsert or a deletion. Of one key the highest counts."""

ECHO_TOPIC = "time.echo"
"""The topic that says how far ingest has come. Only ingest writes and reads it."""

RESULT_ECHO_TOPIC = "time.results"
"""The topic that says how far queries have come. Only the engines of queries use it."""

HEAD_TOPIC = "audit.head"
"""The topic that keeps the audit log's heads."""


def in_topic(stream: str, name: str) -> str:
    """The topic to which one sender of a stream writes. `name` is random."""
    return f"in.{stream}.{name}"


def lab_topic(relation: str) -> str:
    """The topic that holds the labelled tuples of a stream or an output, only for the platform."""
    return f"lab.{relation}"


def quarantine_topic(stream: str) -> str:
    """The topic for records of a stream that ingest refuses."""
    return f"quarantine.{stream}"


def parked_topic(stream: str) -> str:
    """The topic for records of a stream whose role expression ingest does not know yet."""
    return f"parked.{stream}"


def out_topic(output: str, class_name: str) -> str:
    """The delivery topic of one delivery class of an output."""
    return f"out.{output}.{class_name}"


def out_pattern(output: str) -> str:
    """The regular expression that a subscriber's consumer subscribes to."""
    return rf"^out\.{output}\..*"


def topic_relation(topic: str) -> str:
    """The stream or output to which a topic belongs."""
    return topic.split(".")[1]
