"""Diagrams in the forms in which people have Borealis files: the plans and notes, or the error.

`diagrams.json` has what is wanted of each file in `diagrams`. The names and values are our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from secadmin.languages import parse_borealis
from tests.unit.secadmin.languages.shorthand import show
from tests.unit.secadmin.languages.streams import Streams

_FOLDER = Path(__file__).with_name("diagrams")
_WANTED: dict[str, dict[str, Any]] = json.loads(_FOLDER.with_suffix(".json").read_text())


def test_each_diagram_is_a_case() -> None:
    assert {file.stem for file in _FOLDER.iterdir()} == _WANTED.keys()


@pytest.mark.parametrize("name", _WANTED)
def test_diagram(name: str) -> None:
    wanted = _WANTED[name]
    text = (_FOLDER / f"{name}.xml").read_text()
    if "error" in wanted:
        with pytest.raises(InvalidInput) as caught:
            parse_borealis(text, Streams())
        assert str(caught.value) == wanted["error"]
        assert caught.value.position is not None
        return
    diagram = parse_borealis(text, Streams())
    assert {output: show(plan) for output, plan in diagram.outputs} == wanted["plans"]
    assert list(diagram.notes) == wanted["notes"]
    for _, plan in diagram.outputs:
        assert analyse(plan.plan) == plan
