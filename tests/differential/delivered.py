"""Records for Kafka's sink, as results and deliveries that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import Row

from catalog.analysis import analyse
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.placement import Placement
from catalog.plan import DELETED, INSTANT
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Schema
from catalog.topics import TUPLE_HEADER
from catalog.upserts import upsert_keys
from tests.differential.case import Case, Outcome
from tests.differential.wire import decode, decode_json
from tests.oracle.values import Tuple, Value, timestamp


def run_of(case: Case) -> QueryRun:
    """The case as a run: each class's topic is called by its number."""
    output = output_relation(9, "result", analyse(case.plan))
    placement = Placement.SOURCES if case.view else Placement.SINK
    if case.exact:
        placement = Placement.ROLES
    shared = placement.has_common_results(case.plan)
    classes = tuple(
        FanOutClass(str(index), each.clearance, each.weak, each.beyond, index + 1, each.ways)
        for index, each in enumerate(case.classes)
    )
    return QueryRun(
        *("result", case.plan, (FedOutput(output, classes, shared),), case.sources, {}),
        reaches=case.reaches,
        independent=case.independent,
        floor=case.floor,
        conflict_classes=case.conflict_classes,
        placement=placement,
    )


def outcome(run: QueryRun, rows: Iterable[Row]) -> Outcome:
    """What the records say; no topic is among them that is not the run's."""
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        topics[row["topic"]].append(row)
    schema = run.output.schema
    inside = topics.pop(run.output.topic, [])
    delivered = [topics.pop(each.topic, []) for each in run.classes]
    assert not topics
    return Outcome(
        [Tuple(decode(row["value"], schema), _label(row, TUPLE_HEADER)) for row in inside],
        tuple(
            [Tuple(_values(run, row), _label(row, "label")) for row in rows] for rows in delivered
        ),
    )


def _values(run: QueryRun, row: Row) -> tuple[Value, ...]:
    """The values of a delivered record. An upsert also has them in its key and its version."""
    schema, keys = run.output.schema, upsert_keys(run.plan)
    if not keys:
        return decode_json(row["value"], schema)
    own = Schema(tuple(each for each in schema.attributes if each.name in keys))
    known = dict(zip(own.names, decode_json(row["key"], own), strict=True))
    known |= {INSTANT: timestamp(int(header(row, 2, "row-version")))}
    if row["value"] is None:
        known |= {DELETED: True}
        return tuple(known.get(name) for name in schema.names)
    values = dict(zip(schema.names, decode_json(row["value"], schema), strict=True))
    assert values | known == values
    return tuple(values.values())


def header(row: Row, index: int, key: str) -> str:
    """The text of a record's header, which is at that place under that name."""
    found = row["headers"][index]
    assert found["key"] == key
    return bytes(found["value"]).decode()


def _label(row: Row, key: str) -> Label | None:
    return Label.from_wire(header(row, 0, key))
