"""The cases of ksqlDB's own tests (shared/vectors/ksql-5.0), as this platform says them.

| ksqlDB | here |
|---|---|
| a stream has a topic, a format and a key | a stream has attributes |
| a record has a timestamp | it has the attribute `rowtime`, which is the event time |
| times begin at 1970 | they begin now, because a stream takes no record that is late |
| each record is a change of its own | records of one time are one change, so each comes a microsecond behind the one before |
| a record is DELIMITED | it is the JSON object of the same values |
| WITH names the topic of a result | the platform names topics, so WITH is left out |
| a table with windows sends each change | EMIT CHANGES says so, and the next record comes when the result of the last one is there |
| the window is in the key of a result | WINDOWSTART and WINDOWEND are results |
| a field of a structure is called as the whole path | it is called as the field, so AS says the path |
"""  # noqa: E501  # a row of a table

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.schema import Attribute, AttributeType, Schema, Type, parse_type
from tests.oracle.nested_values import from_json
from tests.oracle.values import Value

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "ksql-5.0"
TIME = "rowtime"
WINDOW_MS = 30_000
"""The size of all windows of the cases: they begin at a multiple of it."""
_DECLARED = re.compile(r"CREATE STREAM (\w+) \((.*)\) WITH \((.*)\);")
_COLUMN = re.compile(r"(`?\w+`?) (\w+(?:<[^>]*>)?)")
_FIELD = "S->`END`"
_WITH = re.compile(r" WITH \([^)]*\)")


@dataclass(frozen=True, slots=True)
class Result:
    """What a record of a result says: its values, the key of its group, its time, its window (ms).

    None stands for what the result does not have.
    """

    values: tuple[Value, ...]
    key: str | None = None
    time_ms: int | None = None
    window_ms: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class KsqlCase:
    """One case: the declaration of its stream, its query, what is sent and what comes of it."""

    name: str
    declaration: str
    query: str
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self._declared()[1]

    @property
    def windowed(self) -> bool:
        """Whether its results are of windows."""
        return " WINDOW " in self.query

    @property
    def schema(self) -> Schema:
        """The attributes of its stream, and `rowtime`."""
        columns = _COLUMN.findall(self._declared()[2])
        own = (Attribute(name.strip("`").lower(), parse_type(kind)) for name, kind in columns)
        return Schema((Attribute(TIME, Type.TIMESTAMP, required=True), *own))

    @property
    def sql(self) -> str:
        """Its query in this language."""
        text = _WITH.sub("", self.query).replace(_FIELD, f"{_FIELD} AS s__end")
        if not self.windowed:
            return text
        return text.replace("SELECT ", "SELECT WINDOWSTART, WINDOWEND, ").replace(
            ";", " EMIT CHANGES;"
        )

    def records(self, zero_us: int) -> list[bytes | None]:
        """What a sender sends. Its times begin at `zero_us`, in microseconds since 1970."""
        return [self._record(number, each, zero_us) for number, each in enumerate(self.inputs)]

    def wanted(self, results: Schema) -> list[Result]:
        """Its results, whose attributes are those of `results` without the platform's own."""
        grouped = "group by" in self.query.lower()
        found = []
        for each in self.outputs:
            window = each.get("window")
            found.append(
                Result(
                    self._values(each["value"], results),
                    str(each["key"]) if grouped and not window else None,
                    each["timestamp"] if grouped and not window else None,
                    (window["start"], window["end"]) if window else None,
                )
            )
        return found

    def _declared(self) -> re.Match[str]:
        match = _DECLARED.fullmatch(self.declaration)
        assert match, self.declaration
        return match

    def _record(self, number: int, given: Mapping[str, Any], zero_us: int) -> bytes | None:
        value = given["value"]
        if value is None:
            return None
        if isinstance(value, str):
            own = [each for each in self.schema.attributes if each.name != TIME]
            cells = zip(own, value.split(","), strict=True)
            value = {each.name: _typed(cell, each.type) for each, cell in cells}
        fields = {name.lower(): cell for name, cell in value.items()}
        time_us = zero_us + given["timestamp"] * 1_000 + number
        return json.dumps({TIME: time_us, **fields}).encode()

    def _values(self, value: Any, results: Schema) -> tuple[Value, ...]:
        if isinstance(value, str):
            cells = value.split(",")
        else:
            by_name = {name.lower(): cell for name, cell in value.items()}
            cells = [by_name.pop(name.lower()) for name in results.names]
            assert not by_name
        pairs = zip(results.attributes, cells, strict=True)
        return tuple(_typed(cell, each.type) for each, cell in pairs)


def _typed(cell: Any, kind: AttributeType) -> Value:
    if not isinstance(kind, Type):
        return from_json(cell, kind)
    made: dict[Type, type[int | float | str]] = {
        Type.BIGINT: int,
        Type.DOUBLE: float,
        Type.STRING: str,
    }
    return made[kind](cell)


def cases() -> dict[str, KsqlCase]:
    """All cases by their names. There is none if the vectors are not beside the repository."""
    found = {}
    for file in sorted(VECTORS.glob("*.json")):
        for each in json.loads(file.read_text("utf-8"))["tests"]:
            declaration, query = each["statements"]
            made = KsqlCase(each["name"], declaration, query, each["inputs"], each["outputs"])
            found[made.name] = made
    return found
