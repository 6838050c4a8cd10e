"""What people write on the command line."""

from __future__ import annotations

import pytest

from catalog.errors import InvalidInput
from catalog.permission import ObjectKind, Permission
from secadmin.cli.durations import byte_count, duration_words, milliseconds
from secadmin.cli.root_group import global_options_first
from secadmin.cli.words import parse_attribute, parse_grant, parse_schema_file
from secadmin.languages.duration import short_ms

READ, VIEW = Permission.READ_TUPLE, Permission.VIEW_OBJECT
GRANTS = [
    ("READ TUPLE|stream|in1", (READ,), "stream", "in1"),
    ("READ|TUPLE|stream|in1", (READ,), "stream", "in1"),
    ("READ|TUPLE,|view-object|on|stream|in1", (READ, VIEW), "stream", "in1"),
    ("read_tuple|VIEW_OBJECT|STREAM|in1", (READ, VIEW), "stream", "in1"),
    ("ADD STREAM|system", (Permission.ADD_STREAM,), "system", "system"),
    ("ADD|STREAM|system", (Permission.ADD_STREAM,), "system", "system"),
    ("ADD|STREAM|on|system", (Permission.ADD_STREAM,), "system", "system"),
    ("SEND|stream|system", (Permission.SEND,), "stream", "system"),
    ("SEND|on|stream|system", (Permission.SEND,), "stream", "system"),
    ("VIEW OBJECT|stream|on", (VIEW,), "stream", "on"),
]


@pytest.mark.parametrize(("words", "permissions", "kind", "name"), GRANTS)
def test_grants(words: str, permissions: tuple[Permission, ...], kind: str, name: str) -> None:
    wanted = parse_grant(words.split("|"))
    assert (wanted.permissions, wanted.kind, wanted.name) == (permissions, ObjectKind(kind), name)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("READ|stream|in1", "unknown permission 'READ'"),
        ("READ TUPLE|in1", "name the object with its kind"),
        ("system", "name the object with its kind"),
        ("stream|in1", "name the object with its kind"),
        ("on|stream|in1", "at least one"),
        ("FLY|system", "unknown permission 'FLY'"),
        ("READ|TUPLE|on|stream|a,|SEND|on|stream|b", "a call is about one object"),
    ],
)
def test_unclear_grants(words: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        parse_grant(words.split("|"))


def test_attributes() -> None:
    assert parse_attribute("ts:timestamp!") == {
        "name": "ts",
        "type": "timestamp",
        "required": True,
    }
    assert parse_attribute("n:int")["type"] == "bigint"
    assert parse_attribute("s:STRUCT<a: INT, b ARRAY<TEXT>>!") == {
        "name": "s",
        "type": "struct<a bigint, b array<string>>",
        "required": True,
    }
    for wrong in ("ts", ":double", "ts:"):
        with pytest.raises(InvalidInput):
            parse_attribute(wrong)


def test_schema_files() -> None:
    listed = '[{"name": "a", "type": "text", "required": true}, {"name": "b", "type": "double"}]'
    attributes = parse_schema_file(listed)
    assert [(a["type"], a["required"]) for a in attributes] == [("string", True), ("double", False)]
    assert parse_schema_file(f'{{"attributes": {listed}}}') == attributes
    deep, long = "[" * 100_000, f'[{{"name": "a", "type": {"9" * 5000}}}]'
    for wrong in ("{", "{}", "[1]", '[{"name": "a"}]', "3", deep, long):
        with pytest.raises(InvalidInput):
            parse_schema_file(wrong)


def test_durations_and_sizes() -> None:
    durations = ("500ms", "5s", "1.5s", "10m", "1h30m", "2d")
    assert [milliseconds(text) for text in durations] == [
        *(500, 5000, 1500, 600_000, 5_400_000, 172_800_000)
    ]
    assert [duration_words(n) for n in (0, 500, 5000, 3_600_000, -60_000)] == [
        *("0s", "500ms", "5s", "1h", "-1m")
    ]
    assert [byte_count(text) for text in ("10", "64KiB", "1 MB")] == [10, 65536, 1_000_000]
    for wrong in ("", "5", "s", "5 weeks", "-5s", "٣s", "9" * 400 + "d", "1." + "9" * 400 + "d"):
        with pytest.raises(InvalidInput, match="is not a duration"):
            milliseconds(wrong)
    for wrong in ("many", "٣", "9" * 5000):
        with pytest.raises(InvalidInput, match="is not a size"):
            byte_count(wrong)


def test_as_many_digits_are_taken_as_in_a_query() -> None:
    most, more = "9" * 15, "1" + "0" * 15
    assert (milliseconds(f"{most}ms"), byte_count(most)) == (int(most), int(most))
    for refuse, text in ((milliseconds, f"{more}ms"), (byte_count, more), (short_ms, more)):
        with pytest.raises(InvalidInput, match="is not a"):
            refuse(text)
    with pytest.raises(InvalidInput, match="at most 400 days"):
        short_ms(most)


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("user list --json", "--json user list"),
        ("query list --server https://a --ca=x", "--server https://a --ca=x query list"),
        ("consume -- --json", "consume -- --json"),
        ("whoami --server", "--server whoami"),
    ],
)
def test_global_options_can_stand_anywhere(given: str, ordered: str) -> None:
    assert global_options_first(given.split()) == ordered.split()
