"""The cases of ksqlDB's own tests through real topics: records in, results out."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from confluent_kafka import Message

from catalog.checked_plan import CheckedPlan
from catalog.clearance import Clearance
from catalog.errors import NotFound
from catalog.label import Label
from catalog.plan import DELETED, INSTANT, WINDOW_END, WINDOW_START
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation
from catalog.runs import IngestRun, IngestStream, QueryRun
from catalog.schema import AttributeType, Schema, Type
from catalog.time_source import TimeSource
from catalog.topics import quarantine_topic
from secadmin.languages import parse_sql
from tests.integration.secfilter.ksql_cases import TIME, WINDOW_MS, KsqlCase, Result, cases
from tests.integration.secfilter.plane import Plane, headers
from tests.lanes import is_long
from tests.oracle.nested_values import from_json

CASES = cases()
_SAMPLE = ["count group by value"] if CASES else []
# The longest wait for results, however long the machine takes.
_WAIT_S = 60.0
_OWN = {INSTANT, DELETED, TIME, WINDOW_START, WINDOW_END}


def test_all_cases_are_here() -> None:
    if not CASES:
        pytest.skip("the cases of ksqlDB are not beside the repository")
    assert len(CASES) == 20


@pytest.mark.parametrize("name", sorted(CASES) if is_long() else _SAMPLE)
def test_a_case(plane: Plane, name: str) -> None:
    case = CASES[name]
    stream = stream_of(plane, case)
    plan = parsed(case, stream.relation)
    query = plane.query(plan, Clearance(Label.of(0).bits))
    plane.start(IngestRun("ingest-1", (stream,)))
    plane.start(query)
    # Windows begin at a multiple of their size. The others wait until their instants are over.
    zero_ms = int(time.time() * 1_000) + 1_000
    if case.windowed:
        zero_ms += -zero_ms % WINDOW_MS
    send(plane, case, stream, query, zero_ms)
    found = results(plane, query, len(case.outputs), plan.schema, zero_ms)
    wanted = case.wanted(own(plan.schema))
    assert [replace(each, values=()) for each in found] == [
        replace(each, values=()) for each in wanted
    ]
    assert [each.values for each in found] == [_about(each.values) for each in wanted]
    empty = sum(each["value"] is None for each in case.inputs)
    refused = plane.read(quarantine_topic(stream.relation.name), empty, timeout_s=_WAIT_S)
    assert len(refused) == empty, "what has no value is in the quarantine"


def stream_of(plane: Plane, case: KsqlCase) -> IngestStream:
    """The stream of a case, with topics of its own.

    A record of windows may come much later than it says, because each waits for the one before.
    """
    made = plane.stream(0)
    relation = replace(
        made.relation,
        schema=case.schema,
        event_time=TIME,
        time=TimeSource.BROKER,
        lateness_ms=600_000 if case.windowed else 1_000,
    )
    form = RecordFormat(times=TimeFormat.EPOCH_US, unknown_fields=UnknownFields.IGNORE)
    return replace(made, relation=relation, record_format=form, max_ahead_ms=600_000)


def parsed(case: KsqlCase, relation: Relation) -> CheckedPlan:
    class OneStream:
        """ksqlDB takes no account of the case of names."""

        def relation(self, name: str) -> Relation:
            if name.lower() != case.stream.lower():
                raise NotFound(name)
            return relation

    return parse_sql(case.sql, OneStream())


def send(plane: Plane, case: KsqlCase, stream: IngestStream, query: QueryRun, at_ms: int) -> None:
    """Send the records, those of windows one by one: what comes together is one update."""
    for number, record in enumerate(case.records(at_ms * 1_000), start=1):
        plane.producer.produce(stream.senders[0].topic, record)
        assert plane.producer.flush(10) == 0
        if case.windowed:
            came = plane.read(query.classes[0].topic, number, timeout_s=_WAIT_S)
            assert len(came) == number, f"no result of record {number}"


def results(
    plane: Plane, query: QueryRun, count: int, schema: Schema, zero_ms: int
) -> list[Result]:
    """What came, each once, in its order."""
    found = plane.read(query.classes[0].topic, count, timeout_s=_WAIT_S)
    once: dict[str, Message] = {}
    for each in found:
        once.setdefault(dict(headers(each))["id"], each)
    return [_result(each, own(schema), zero_ms) for each in once.values()]


def own(schema: Schema) -> Schema:
    """The attributes that a case asks for."""
    return Schema(tuple(each for each in schema.attributes if each.name not in _OWN))


def _typed(value: Any, kind: AttributeType) -> Any:
    return value if isinstance(kind, Type) else from_json(value, kind)


def _about(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(pytest.approx(each) if isinstance(each, float) else each for each in values)


def _result(message: Message, schema: Schema, zero_ms: int) -> Result:
    value: Mapping[str, Any] = json.loads(message.value() or b"")
    key = json.loads(message.key() or b"null")

    def behind(name: str) -> int:
        """How far a time is behind the time at which the records begin (ms)."""
        return int(datetime.fromisoformat(value[name]).timestamp() * 1_000) - zero_ms

    return Result(
        tuple(_typed(value[each.name], each.type) for each in schema.attributes),
        None if key is None else str(*key.values()),
        behind(INSTANT) if INSTANT in value else None,
        (behind(WINDOW_START), behind(WINDOW_END)) if WINDOW_START in value else None,
    )
