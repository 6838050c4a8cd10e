"""Stored forms: each older one is still read, a newer one is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from catalog.plan import (
    Column,
    Filter,
    Match,
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
    Union,
    walk,
)
from catalog.record_format import RecordFormat, TimeFormat, UnknownFields
from catalog.relation import Relation
from catalog.schema import Schema
from catalog.stored_form import VERSION, NewerForm, from_stored, to_stored
from catalog.stored_upgrades import UPGRADES
from tests.plans import updating, whole
from tests.unit.catalog.plans import (
    JOINED,
    ONE,
    SOURCE,
    WINDOWED,
    call,
    column,
    ref,
    relation,
)
from tests.unit.catalog.test_plan_flow import DECLARED, FITS

FOLDER = Path(__file__).parent / "stored"
OLDER = range(1, VERSION)

# What the plans of each folder's file mean, by name.
MEANT: dict[str, Node | Plan] = {
    "window": WINDOWED,
    "updates": updating(Filter(WINDOWED, call(">", ref("n"), ONE))),
    "join": Project(JOINED, (column("symbol"),)),
    "declared": FITS,
    "union": Union(
        (Project(WINDOWED, (column("n"),)), Project(SOURCE, (Column("n", ref("size")),)))
    ),
    "source": SOURCE,
}
FORMAT = RecordFormat(times=TimeFormat.EPOCH_S, unknown_fields=UnknownFields.IGNORE)


def kept(version: int) -> Any:
    """What a program of that version stored."""
    return json.loads((FOLDER / f"version_{version}.json").read_text())


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("name", MEANT)
def test_a_plan_of_an_older_form_is_read(version: int, name: str) -> None:
    assert from_stored(Plan, kept(version)["plans"][name]) == whole(MEANT[name])


@pytest.mark.parametrize("version", OLDER)
def test_what_else_is_stored_in_an_older_form_is_read(version: int) -> None:
    data = kept(version)
    assert from_stored(Relation, data["relation"]) == relation(declared=DECLARED)
    assert from_stored(RecordFormat, data["record_format"]) == FORMAT
    assert from_stored(Schema, data["schema"]) == SOURCE.relation.schema


def test_a_pattern_of_form_9_is_read() -> None:
    """Its PREV was a function of its own, and it has one result for each match."""
    (match,) = [
        node for node in walk(from_stored(Plan, kept(9)["pattern"]).root) if isinstance(node, Match)
    ]
    assert not match.per_row
    assert [(each.function, each.moved) for each in match.readings] == [
        ("last", -2),
        ("sum", 0),
        ("first", 0),
    ]


def test_a_window_of_rows_of_form_11_is_read() -> None:
    """It moves with each tuple."""
    found = walk(from_stored(Plan, kept(11)["moving"]).root)
    assert [n.window for n in found if isinstance(n, Moving)] == [MovingWindow(rows=5)]


def test_a_window_of_rows_of_form_12_is_read() -> None:
    """Each view has windows of the full size."""
    found = walk(from_stored(Plan, kept(12)["moving"]).root)
    own = MovingWindow(rows=5, slide_rows=2)
    assert [n.window for n in found if isinstance(n, Moving)] == [own]


def test_there_is_a_kept_file_for_each_older_form() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {f"version_{n}.json" for n in OLDER}
    assert len(UPGRADES) == VERSION - 1


def test_a_value_is_stored_with_the_newest_version() -> None:
    stored = to_stored(whole(SOURCE))
    assert stored["version"] == VERSION
    assert from_stored(Plan, json.loads(json.dumps(stored))) == whole(SOURCE)


def test_a_newer_form_is_refused_with_what_to_do() -> None:
    stored = {**to_stored(whole(SOURCE)), "version": VERSION + 1}
    with pytest.raises(NewerForm, match=f"form {VERSION + 1}.*up to {VERSION}: use the program"):
        from_stored(Plan, stored)


NO_FORM: dict[str, Mapping[str, Any]] = {
    "a version in words": {"version": "2", "value": {}},
    "version true": {"version": True, "value": {}},
    "version zero": {"version": 0, "value": {}},
    "no value": {"version": VERSION},
    "empty": {},
    "a list": {"version": 1, "value": [1]},
}


@pytest.mark.parametrize("data", NO_FORM.values(), ids=NO_FORM.keys())
def test_what_is_no_stored_form_is_refused(data: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a stored"):
        from_stored(Plan, data)


def test_a_value_of_another_class_is_refused() -> None:
    with pytest.raises(ValueError, match="not a stored Plan"):
        from_stored(Plan, to_stored(SOURCE.relation))


@pytest.mark.parametrize("version", OLDER)
def test_an_older_form_with_something_unknown_is_refused(version: int) -> None:
    for name in MEANT:
        plan = kept(version)["plans"][name]
        target = plan if version == 1 else plan["value"]
        target["bypass"] = True
        with pytest.raises(ValueError, match="not a stored"):
            from_stored(Plan, plan)
