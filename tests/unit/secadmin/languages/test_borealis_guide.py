"""The examples of docs/borealis.md run, and mean the SQL that is below each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from secadmin.control.plan_text import plan_text
from secadmin.languages import parse_borealis
from secadmin.languages.borealis.boxes import KINDS
from secadmin.languages.borealis.fields import TYPES
from secadmin.languages.borealis.other_boxes import REFUSED
from secadmin.languages.borealis.unused import REFUSED_ELEMENTS, UNUSED_ELEMENTS
from tests.unit.secadmin.languages.streams import Streams

GUIDE = (Path(__file__).parents[4] / "docs" / "borealis.md").read_text()
EXAMPLES = re.findall(r"```xml\n(.*?)```\n```sql\n(.*?)```", GUIDE, re.DOTALL)
_FIELDS = {
    "trades": "ts timestamp symbol string price double volume int",
    "trades-eu": "ts timestamp symbol string price double volume int",
    "quotes": "at timestamp symbol string bid double open bool",
    "packets": "time int protocol string bytes int",
    "flows": "began int host string packets int",
}


def whole_document(boxes: str) -> str:
    """A document with these boxes. All that they write and none of them reads is an output."""
    read = dict.fromkeys(re.findall(r'<in +stream="(.*?)"', boxes))
    written = [name for name in re.findall(r'<out +stream="(.*?)"', boxes) if name not in read]
    inputs = [name for name in read if name in _FIELDS]
    head = "".join(f'<input stream="{name}" schema="{name}"/>' for name in inputs)
    head += "".join(f'<output stream="{name}"/>' for name in written)
    return f"<borealis>{head}{''.join(map(_schema, inputs))}{boxes}</borealis>"


def _schema(name: str) -> str:
    words = _FIELDS[name].split()
    fields = "".join(
        f'<field name="{field}" type="{kind}"/>'
        for field, kind in zip(words[::2], words[1::2], strict=True)
    )
    return f'<schema name="{name}">{fields}</schema>'


def sql_of(example: str) -> str:
    """The SQL of an example, as `query show --sql` prints it."""
    text = example if "<borealis>" in example else whole_document(example)
    outputs = parse_borealis(text, Streams()).outputs
    return plan_text({name: checked.plan for name, checked in outputs}, "sql")


@pytest.mark.parametrize(("example", "sql"), EXAMPLES)
def test_example(example: str, sql: str) -> None:
    assert sql_of(example) == sql.rstrip("\n")


def test_each_box_has_an_example() -> None:
    assert GUIDE.count("```xml") == len(EXAMPLES)
    shown = set(re.findall(r'type="(\w+)">', "".join(xml for xml, _ in EXAMPLES)))
    assert shown >= KINDS
    assert set(re.findall("\n### (.*)", GUIDE)) == KINDS


def test_all_that_is_not_used_or_refused_is_named() -> None:
    for element in (*UNUSED_ELEMENTS, *REFUSED_ELEMENTS):
        assert f"<{element}>" in GUIDE
    for name in (*REFUSED, *TYPES):
        assert f"`{name}`" in GUIDE
