"""Whatever the document: plans, or InvalidInput."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from secadmin.languages import parse_borealis
from tests.unit.secadmin.languages.streams import Streams

_VALID = Path(__file__).with_name("diagram.xml").read_text()
_LINES = _VALID.splitlines()


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    with suppress(InvalidInput):
        parse_borealis(text, Streams())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_characters_changed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(_VALID)))
    until = data.draw(st.integers(at, min(at + 3, len(_VALID))))
    with suppress(InvalidInput):
        parse_borealis(_VALID[:at] + data.draw(st.text(max_size=3)) + _VALID[until:], Streams())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_lines_changed(data: st.DataObject) -> None:
    lines = list(_LINES)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = data.draw(st.lists(st.sampled_from(_LINES), max_size=2))
    with suppress(InvalidInput):
        parse_borealis("\n".join(lines), Streams())
