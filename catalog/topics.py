"""Names of topics (DESIGN, where tuples flow) and of the headers on their records."""

from __future__ import annotations

VERSION_HEADER = "version"
LABEL_HEADER = "label"
SENDER_HEADER = "sender"
ID_HEADER = "id"
FENCE_HEADER = "fence"
REASON_HEADER = "reason"

WIRE_VERSION = 2
"""The version of what stands in lab.*: a record of another version is not read."""

HEAD_TOPIC = "audit.head"
"""Where the audit log's heads are kept."""


def in_topic(stream: str, name: str) -> str:
    """Where one sender of a stream writes its tuples, as JSON; the name is random."""
    return f"in.{stream}.{name}"


def lab_topic(relation: str) -> str:
    """Where labelled tuples of a stream or an output stand, for the platform alone."""
    return f"lab.{relation}"


def quarantine_topic(stream: str) -> str:
    """Where a stream's records go that do not fit its schema."""
    return f"quarantine.{stream}"


def out_topic(output: str, class_name: str) -> str:
    """The delivery topic of one delivery class of an output."""
    return f"out.{output}.{class_name}"


def out_pattern(output: str) -> str:
    """The regular expression that a subscriber's consumer subscribes to."""
    return rf"^out\.{output}\..*"


def topic_relation(topic: str) -> str:
    """The stream or output that a topic is of."""
    return topic.split(".")[1]
