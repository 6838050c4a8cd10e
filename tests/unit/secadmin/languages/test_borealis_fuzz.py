"""Whatever the document: plans, or InvalidInput."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from secadmin.languages import parse_borealis
from tests.lanes import number_of
from tests.unit.secadmin.languages.streams import Streams

_HERE = Path(__file__).parent
EXAMPLES = number_of("LANGUAGE_EXAMPLES", sample=100, long=1_000)
_VALID = [
    (_HERE / name).read_text()
    for name in ("diagram.xml", "diagrams/intrusions.xml", "diagrams/join_by_values.xml")
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    with suppress(InvalidInput):
        parse_borealis(text, Streams())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_characters_changed(data: st.DataObject) -> None:
    valid = data.draw(st.sampled_from(_VALID))
    at = data.draw(st.integers(0, len(valid)))
    until = data.draw(st.integers(at, min(at + 3, len(valid))))
    with suppress(InvalidInput):
        parse_borealis(valid[:at] + data.draw(st.text(max_size=3)) + valid[until:], Streams())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_lines_changed(data: st.DataObject) -> None:
    kept = data.draw(st.sampled_from(_VALID)).splitlines()
    lines = list(kept)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at : at + 1] = data.draw(st.lists(st.sampled_from(kept), max_size=2))
    with suppress(InvalidInput):
        parse_borealis("\n".join(lines), Streams())
