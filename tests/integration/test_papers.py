"""The stories of the papers, as `python3 -m deploy demo --paper` plays them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from deploy.papers import cast, chinese_wall, shared_queries
from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from tests.integration.flowing import Typist


@pytest.mark.long
@pytest.mark.parametrize("story", [shared_queries, chinese_wall])
def test_the_story_of_a_paper(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: ModuleType
) -> None:
    # A process for each command takes most of a second.
    monkeypatch.setattr(cast, "Person", Typist)
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        assert story.main(stack) == 0
