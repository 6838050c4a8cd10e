"""Bad records of every kind through the real broker and Spark: in lab as they are, or quarantined.

What is right, plain Python's JSON says (`bad_tuples.tuple_of`). Counted: nothing is lost, nothing
comes twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from catalog.clearance import Clearance
from catalog.origin import origin_of
from catalog.plan import Source
from catalog.runs import IngestRun
from catalog.schema import Type, held_as
from catalog.topics import TUPLE_HEADER, lab_topic, quarantine_topic
from tests.integration.secfilter.bad_tuples import MAX_BYTES, SCHEMA, records, tuple_of
from tests.integration.secfilter.plane import Plane, headers, values

BIT = 3


@dataclass(frozen=True)
class Went:
    """What was sent, by offset, and where it went."""

    sent: dict[int, bytes | None]
    lab: list[Message]
    quarantine: list[Message]
    delivered: list[Message]


@pytest.fixture
def went(plane: Plane) -> Went:
    sent = records()
    stream = plane.stream(BIT)
    relation = replace(stream.relation, schema=SCHEMA)
    stream = replace(stream, relation=relation, max_bytes=MAX_BYTES)
    run = plane.query(Source(relation), Clearance.of(BIT))
    by_offset: dict[int, bytes | None] = {}

    def sent_as(record: bytes | None, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        by_offset[message.offset() or 0] = record

    for record in sent:
        topic, told = f"in.{relation.name}", partial(sent_as, record)
        plane.producer.produce(topic, record, key=b"k", on_delivery=told)
        plane.producer.poll(0)
    assert plane.producer.flush(60) == 0
    assert len(by_offset) == len(sent)
    plane.start(IngestRun("ingest-bad", (stream,)))
    plane.start(run)
    good = sum(tuple_of(record) is not None for record in sent)
    return Went(
        by_offset,
        plane.read(lab_topic(relation.name), good),
        plane.read(quarantine_topic(relation.name), len(sent) - good),
        plane.read(run.classes[0].topic, good),
    )


def test_every_record_is_in_lab_or_in_quarantine_once(went: Went) -> None:
    expected = {n: found for n, r in went.sent.items() if (found := tuple_of(r)) is not None}
    assert 300 < len(expected) < len(went.sent) - 300, "both ways are gone"
    lab = [(origin.offset, m) for m in went.lab if (origin := origin_of(m.key()))]
    assert len(lab) == len(went.lab)
    refused = [(int(header(m, "offset")), m) for m in went.quarantine]
    wrong_in = [went.sent[n] for n, _ in lab if n not in expected]
    wrong_out = [(header(m, "reason"), went.sent[n]) for n, m in refused if n in expected]
    assert (wrong_in, wrong_out) == ([], [])
    assert sorted(n for n, _ in [*lab, *refused]) == sorted(went.sent)
    for n, message in lab:
        assert header(message, TUPLE_HEADER).partition(";")[0] == str(2**BIT)
        assert decoded(message) == expected[n], went.sent[n]
    for n, message in refused:
        assert (message.key(), message.value()) == (b"k", went.sent[n])
        assert header(message, "reason")
    assert sorted(map(comparable, values(went.delivered))) == sorted(
        map(comparable, expected.values())
    )


def comparable(row: dict[str, Any]) -> str:
    """A tuple without its time, which is written otherwise; zero has no sign."""
    x = row["x"]
    return json.dumps({**row, "at": None, "x": x if x is None else x + 0.0})


def header(message: Message, name: str) -> str:
    """The only header of that name."""
    [text] = [text for key, text in headers(message) if key == name]
    return text


def decoded(message: Message) -> dict[str, Any]:
    """A record of lab.* read without Spark."""
    texts = (message.value() or b"").decode().split("\x1f")
    return {
        a.name: _read(t, held_as(a.type)) for t, a in zip(texts, SCHEMA.attributes, strict=True)
    }


def _read(text: str, kind: Type) -> Any:
    if text == "\x1e":
        return None
    match kind:
        case Type.BOOLEAN:
            return {"true": True, "false": False}[text]
        case Type.BIGINT | Type.TIMESTAMP:
            return int(text)
        case Type.DOUBLE:
            return float(text)
        case Type.STRING:
            return text
