"""The world of a trial: streams with their records, and subscribers, from one JSON file.

Each stream has one category of its own, which a subscriber holds who may read the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from catalog.clearance import Clearance
from catalog.errors import InvalidInput, NotFound
from catalog.label import Label
from catalog.names import check_object_name
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type, check_definition, parse_type
from catalog.time_source import TimeSource
from secadmin.cli.tuple_file import format_of, read_tuples
from secadmin.cli.tuple_rules import TupleRules
from secadmin.cli.words import parse_attribute

_E = TypeVar("_E", bound=StrEnum)
_STREAM = frozenset(
    {"attributes", "records", "event_time", "public", "time_format", "unknown_fields"}
)


@dataclass(frozen=True, slots=True)
class TrialStream:
    """A stream of a trial and the records that its senders write, each as its bytes.

    `mistakes` has the records of a file that are none, in words.
    """

    relation: Relation
    label: Label
    written: RecordFormat
    records: tuple[bytes, ...]
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """All streams by their names, and the clearance of each subscriber."""

    streams: Mapping[str, TrialStream]
    subscribers: Mapping[str, Clearance]

    def relation(self, name: str) -> Relation:
        """The stream of that name. Raises NotFound if there is none."""
        if name not in self.streams:
            raise NotFound(f"there is no stream {name!r}")
        return self.streams[name].relation

    def time_format(self, name: str) -> TimeFormat:
        """How the records of the stream write times."""
        return self.streams[name].written.times

    def words(self, label: Label) -> list[str]:
        """The names of the streams whose categories a label has."""
        carried = set(label.categories())
        return [name for name, each in self.streams.items() if carried & {*each.label.categories()}]


def read_world(file: Path) -> World:
    """Read a trial's data. Files of records are looked for beside it.

    Raises InvalidInput if the file does not fit. The error names the place in it.
    """
    try:
        data = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} is not JSON: {error}") from None
    given = _object(data, file.name, {"streams", "subscribers"})
    streams: dict[str, TrialStream] = {}
    for number, (name, each) in enumerate(_object(given.get("streams"), "streams").items(), 1):
        check_object_name(name)
        streams[name] = _stream(number, name, each, file.parent)
    if not streams:
        raise InvalidInput("streams: name at least one stream")
    subscribers = {
        name: _clearance(may_read, f"subscribers.{name}", streams)
        for name, may_read in _object(given.get("subscribers", {}), "subscribers").items()
    }
    return World(streams, subscribers)


def _stream(number: int, name: str, data: Any, folder: Path) -> TrialStream:
    place = f"streams.{name}"
    given = _object(data, place, _STREAM)
    schema = _schema(given.get("attributes"), place)
    event_time = given.get("event_time")
    if event_time is not None and schema.get(str(event_time)) not in _times(schema):
        raise InvalidInput(f"{place}.event_time: {event_time!r} is no timestamp attribute")
    public = given.get("public", False)
    if not isinstance(public, bool):
        raise InvalidInput(f"{place}.public: write true or false")
    written = RecordFormat(
        times=_choice(TimeFormat, given.get("time_format", TimeFormat.ISO), place),
        unknown_fields=_choice(
            UnknownFields, given.get("unknown_fields", UnknownFields.QUARANTINE), place
        ),
    )
    # The records are old, so only they can move time.
    relation = Relation(
        *(number, name, RelationKind.STREAM, schema, event_time, 0, public),
        time=TimeSource.DATA,
    )
    label = Label() if public else Label.of(number)
    records, mistakes = _records(given.get("records", []), place, folder, relation, written)
    return TrialStream(relation, label, written, records, mistakes)


def _times(schema: Schema) -> list[Attribute]:
    return [each for each in schema.attributes if each.type is Type.TIMESTAMP]


def _schema(data: Any, place: str) -> Schema:
    written = _texts(data, f"{place}.attributes", "write name:type, or name:type! if required")
    read = map(parse_attribute, written)
    try:
        attributes = (Attribute(a["name"], parse_type(a["type"]), a["required"]) for a in read)
        return check_definition(Schema(tuple(attributes)))
    except InvalidInput as error:
        raise InvalidInput(f"{place}.attributes: {error.detail}") from None


def _choice(kind: Callable[[str], _E], text: Any, place: str) -> _E:
    try:
        return kind(text)
    except ValueError as error:
        raise InvalidInput(f"{place}: {error}") from None


def _records(
    data: Any, place: str, folder: Path, relation: Relation, written: RecordFormat
) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """The records and the mistakes: from a list of them, or from the file that is named."""
    if isinstance(data, list):
        return tuple(json.dumps(each, ensure_ascii=False).encode() for each in data), ()
    if not isinstance(data, str):
        raise InvalidInput(f"{place}.records: write a list of objects, or the name of a file")
    file = folder / data
    rules = TupleRules(relation.schema, written, relation.event_time)
    with file.open("rb") as opened:
        read = list(read_tuples(opened, format_of(file), rules))
    mistakes = tuple(f"line {each.line}: {each.mistake}" for each in read if each.value is None)
    return tuple(each.value for each in read if each.value is not None), mistakes


def _clearance(data: Any, place: str, streams: Mapping[str, TrialStream]) -> Clearance:
    names = _texts(data, place, "write a list of streams")
    for name in names:
        if name not in streams:
            raise InvalidInput(f"{place}: there is no stream {name!r}")
    return Clearance.of(*(c for name in names for c in streams[name].label.categories()))


def _texts(data: Any, place: str, hint: str) -> Sequence[str]:
    if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
        raise InvalidInput(f"{place}: {hint}")
    return data


def _object(
    data: Any, place: str, known: frozenset[str] | set[str] | None = None
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidInput(f"{place}: write an object")
    unknown = sorted(data.keys() - known) if known is not None else []
    if unknown:
        names = ", ".join(sorted(known or ()))
        raise InvalidInput(f"{place}: unknown field {unknown[0]!r}; there are {names}")
    return data
