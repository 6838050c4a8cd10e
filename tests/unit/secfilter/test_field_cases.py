"""Records as the field sends them, through ingest: `field_cases.json`, and the shared ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog.label import Label
from catalog.record_format import USUAL, RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation, RelationKind
from catalog.runs import IngestRun, IngestStream
from catalog.schema import Attribute, Schema, Type
from tests.senders import sent
from tests.unit.secfilter.test_ingest import headers, run

SHARED = Path(__file__).parents[4] / "shared" / "vectors" / "field-cases" / "records.json"
CASES: list[dict[str, str]] = json.loads(
    Path(__file__).with_name("field_cases.json").read_text(encoding="utf-8")
)
SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP, required=True),
        Attribute("sensor", Type.STRING, required=True),
        Attribute("text", Type.STRING),
        Attribute("value", Type.DOUBLE),
        Attribute("n", Type.BIGINT),
        Attribute("flag", Type.BOOLEAN),
        Attribute("at", Type.TIMESTAMP),
    )
)
FORMATS = {
    "iso": USUAL,
    "ignore": RecordFormat(unknown_fields=UnknownFields.IGNORE),
    "epoch_s": RecordFormat(times=TimeFormat.EPOCH_S),
    "epoch_ms": RecordFormat(times=TimeFormat.EPOCH_MS),
    "epoch_us": RecordFormat(times=TimeFormat.EPOCH_US),
}
# Each stream of one group reads every record in its own way.
RUN = IngestRun(
    "ingest-1",
    tuple(
        sent(
            IngestStream(
                Relation(n, name, RelationKind.STREAM, SCHEMA, "ts", 0),
                Label.of(n),
                60_000,
                10_000,
                written,
            )
        )
        for n, (name, written) in enumerate(FORMATS.items())
    ),
)


def went(spark: SparkSession, values: list[bytes]) -> list[dict[str, str]]:
    """Of each record, in each stream: the lab value with `-` for NULL, or the reason."""
    rows = run(spark, [(f"in.{name}", value) for value in values for name in FORMATS], streams=RUN)
    said = []
    for row in rows:
        kind, name = row["topic"].split(".")
        if kind == "lab":
            value = bytes(row["value"]).decode().replace("\x1f", "|").replace("\x1e", "-")
            said.append((name, value))
        else:
            said.append((name, dict(headers(row))["reason"]))
    width = len(FORMATS)
    return [dict(said[n : n + width]) for n in range(0, len(said), width)]


@pytest.fixture(scope="module")
def results(spark: SparkSession) -> dict[str, dict[str, str]]:
    made = went(spark, [case["record"].encode() for case in CASES])
    return {case["id"]: found for case, found in zip(CASES, made, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, str], results: dict[str, dict[str, str]]) -> None:
    """A case says what `iso` makes of the record, and the other formats where they differ."""
    found = results[case["id"]]
    for name in FORMATS:
        if name not in case and "as a number" in found[name]:
            continue
        assert found[name] == case.get(name, case["iso"]), name


def test_what_the_field_is_known_to_send(spark: SparkSession) -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    cases: list[dict[str, Any]] = json.loads(SHARED.read_text(encoding="utf-8"))
    # Bytes that are no text are escaped once more.
    records = [
        text.encode().decode("unicode_escape") if text.startswith("\\") else text
        for text in (case["record"] for case in cases)
    ]
    made = went(spark, [record.encode() for record in records])
    for case, found in zip(cases, made, strict=True):
        wanted, detail = case["wanted"], case["detail"]
        own = next((name for name in ("epoch_ms", "epoch_s") if name in wanted), "iso")
        own = "ignore" if "ignore" in wanted else own
        is_tuple = {name: "|" in value for name, value in found.items()}
        assert is_tuple[own] == wanted.startswith("tuple"), (case, found)
        if "reason" in wanted and wanted != "tuple or reason":
            assert not is_tuple["iso"], (case, found)
            named = re.search(r"names (?:attribute )?(ts|n|value|text|sensor|firmware)\b", detail)
            assert not named or found["iso"].startswith(f"{named[1]}: "), (case, found)
    by_id = {case["id"]: found for case, found in zip(cases, made, strict=True)}
    expected = {
        "r04": "no zone",
        "r14": "not JSON at byte 51",
        "r17": "empty",
        "r18": "at byte 43",
        "r19": "an array, expected an object",
        "r24": "looks like Avro of a schema registry",
    }
    assert {id_: text in by_id[id_]["iso"] for id_, text in expected.items()} == dict.fromkeys(
        expected, True
    )
