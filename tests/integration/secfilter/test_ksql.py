"""The cases of ksqlDB 5.0 through real topics, ingest and Spark: what the language can say of them.

The records get event times of their own, a millisecond apart, so that their order stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catalog.checked_plan import CheckedPlan
from catalog.clearance import Clearance
from catalog.errors import InvalidInput
from catalog.label import Label
from catalog.plan import Aggregate
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation
from catalog.runs import IngestRun, IngestStream
from catalog.schema import Attribute, Schema, Type
from catalog.upserts import upsert_keys
from secadmin.languages import parse_sql
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.plane import Plane, values

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "ksql-5.0"
pytestmark = [pytest.mark.long, embedded_only]
_TYPES = {"bigint": Type.BIGINT, "integer": Type.BIGINT, "int": Type.BIGINT, "double": Type.DOUBLE}
_TYPES |= {"varchar": Type.STRING, "string": Type.STRING}
_DAY_S = 86_400
_STARTS = 1_769_860_800
# What the language does not say, by what the error tells.
REFUSED = {
    "sum double map": r"'\[' is not part",
    "Project struct fields with reserved name": "'->' is not part",
    "topk tumbling": "TOPK is an aggregate function that does not exist",
    "topkdistinct tumbling": "TOPKDISTINCT is an aggregate function that does not exist",
}
# Where a name is needed that ksqlDB makes up by itself.
NAMED = {"max(value)": "max(value) AS high", "min(value)": "min(value) AS low"}


@dataclass(frozen=True)
class Vector:
    """A case: the attributes of its stream, its query, and what comes in and out."""

    name: str
    attributes: tuple[Attribute, ...]
    text: str
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]

    def plan(self, stream: Relation) -> CheckedPlan:
        """The query over its stream. Raises InvalidInput if the language cannot say it."""
        return parse_sql(self.text, _One(stream))

    def records(self) -> Iterator[dict[str, object]]:
        """The records that are sent, with an event time."""
        names = [each.name for each in self.attributes]
        for number, each in enumerate(self.inputs):
            millisecond = each["timestamp"] + number
            at = datetime.fromtimestamp(_STARTS + millisecond / 1_000, UTC)
            yield {"ts": at.isoformat(), **self._values(names, each["value"])}

    def _values(self, names: Sequence[str], value: Any) -> dict[str, object]:
        if value is None:
            return {"nothing": True}
        if isinstance(value, dict):
            given = {key.upper(): one for key, one in value.items()}
            return {name: given.get(name.upper()) for name in names}
        read = {Type.BIGINT: int, Type.DOUBLE: float, Type.STRING: str}
        texts = value.split(",")
        return {
            each.name: read[each.type](text)
            for each, text in zip(self.attributes, texts, strict=True)
        }

    def expected(self, plan: CheckedPlan) -> list[tuple[object, ...]]:
        """What comes out: every result, or the last one of each window and key."""
        found = [(each.get("window"), self._row(each["value"])) for each in self.outputs]
        if not any(isinstance(each.node, Aggregate) for each in plan.root.walk()):
            return sorted((row for _, row in found), key=str)
        if upsert_keys(plan.plan):
            return sorted((row for _, row in found), key=str)
        last = {(json.dumps(window), row[0]): row for window, row in found}
        return sorted(last.values(), key=str)

    def _row(self, value: Any) -> tuple[object, ...]:
        parts = value.values() if isinstance(value, dict) else value.split(",")
        return tuple(map(_plain, parts))


class _One:
    """The one stream, under every name."""

    def __init__(self, stream: Relation) -> None:
        self._stream = stream

    def relation(self, _name: str) -> Relation:
        return self._stream

    def time_format(self, _name: str) -> TimeFormat:
        return TimeFormat.ISO


def _plain(value: object) -> object:
    """A value as both sides write it: numbers as numbers."""
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def vectors() -> list[Vector]:
    """All cases, or none where the folder is missing."""
    found = []
    for file in sorted(VECTORS.glob("*.json")):
        for case in json.loads(file.read_text("utf-8"))["tests"]:
            declared = re.match(r"CREATE STREAM \w+ \((.*)\) WITH", case["statements"][0])
            assert declared is not None
            columns = re.findall(r"(`?\w+`?) +(\w+(?:<[^()]*>)?)(?:,|$)", declared[1])
            attributes = tuple(
                Attribute(name.strip("`"), _TYPES[kind.lower()])
                for name, kind in columns
                if kind.lower() in _TYPES
            )
            text = case["statements"][1].replace("WITH (KAFKA_TOPIC='topic_s') ", "").rstrip(";")
            for plain, named in NAMED.items():
                text = text.replace(plain, named)
            found.append(Vector(case["name"], attributes, text, case["inputs"], case["outputs"]))
    return found


def stream_of(plane: Plane, vector: Vector) -> IngestStream:
    """A stream with the attributes of a case, whose data moves its time."""
    made = plane.stream(0)
    schema = Schema((Attribute("ts", Type.TIMESTAMP, required=True), *vector.attributes))
    relation = replace(made.relation, schema=schema, event_time="ts", lateness_ms=0)
    written = RecordFormat(unknown_fields=UnknownFields.IGNORE)
    return replace(made, relation=relation, record_format=written)


def test_each_case_gives_what_ksqldb_gives(plane: Plane) -> None:
    cases = vectors()
    if not cases:
        pytest.skip("the vectors of ksqlDB are not beside the project (../shared/vectors)")
    streams, queries = {}, {}
    for case in cases:
        stream = stream_of(plane, case)
        if case.name in REFUSED:
            with pytest.raises(InvalidInput, match=REFUSED[case.name]):
                case.plan(stream.relation)
            continue
        streams[case.name] = stream
        queries[case.name] = plane.query(case.plan(stream.relation), Clearance(Label.of(0).bits))
    plane.start(IngestRun("ingest-1", tuple(streams.values())))
    for query in queries.values():
        plane.start(query)
    told = {each.name: each for each in cases if each.name in queries}
    for name, case in told.items():
        plane.send(streams[name], *case.records())
        # A day later nothing earlier comes, so all windows and instants are complete.
        if case.plan(streams[name].relation).keeps_state:
            later = datetime.fromtimestamp(_STARTS + _DAY_S, UTC).isoformat()
            plane.send(streams[name], {"ts": later, **dict.fromkeys(_names(case), None)})
    wrong = {}
    for name, case in told.items():
        plan = case.plan(streams[name].relation)
        expected = case.expected(plan)
        records = plane.read(queries[name].classes[0].topic, len(expected))
        shown = sorted((_shown(plan, each) for each in values(records)), key=str)
        if shown != expected:
            wrong[name] = (shown, expected)
    assert wrong == {}


def _names(case: Vector) -> list[str]:
    return [each.name for each in case.attributes]


def _shown(plan: CheckedPlan, result: Mapping[str, object]) -> tuple[object, ...]:
    """The values of a result that ksqlDB has, too."""
    own = {"instant", "deleted", "window_start", "window_end", "ts"}
    names = [name for name in plan.schema.names if name not in own]
    return tuple(_plain(result[name]) for name in names)
