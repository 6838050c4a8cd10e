"""The conformance cases of XACML 3.0 in the shared vectors, all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from secadmin.xacml import decide, read_policy, request_of_xml
from tests.requirements import missing

FOLDER = Path(__file__).parents[5] / "shared" / "vectors" / "xacml"
INDEX = FOLDER / "index.json"


def _cases() -> list[dict[str, Any]]:
    # The case "missing" lets the test run, so that it says what is missing.
    return json.loads(INDEX.read_text()) if INDEX.exists() else [{"case": "missing"}]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["case"])
def test_conformance(case: dict[str, Any]) -> None:
    if not INDEX.exists():
        missing(f"the shared test vectors at {FOLDER}")
    folder = FOLDER / case["case"]
    policy = read_policy((folder / "Policy.xml").read_text())
    result = decide(policy, request_of_xml((folder / "Request.xml").read_text()))
    [expected] = case["expected"]
    assert result.decision.value.partition("{")[0] == expected["decision"]
    for advice, key in ((False, "obligations"), (True, "advice")):
        found = [
            (duty.id, [(one.attribute, str(one.value)) for one in duty.assignments])
            for duty in result.duties
            if duty.advice is advice
        ]
        assert found == [
            (one["id"], [(each["id"], each["value"]) for each in one["attrs"]])
            for one in expected[key]
        ]
