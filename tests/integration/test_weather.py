"""Example 1 of paper 002 on the whole platform: what `deploy demo --paper 002` plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.runtime import Runtime
from deploy.scenario.story import BATCH_MS
from deploy.stack import Stack, StackOptions
from deploy.weather.demo import play
from deploy.weather.readings import RAIN_MM_AN_HOUR
from deploy.weather.story import Weather


@pytest.mark.long
def test_lta_gets_what_its_policy_shows(runtime: Runtime, tmp_path: Path) -> None:
    options = StackOptions(tmp_path / "state", broker_port=0, secadmin_port=0, batch_ms=BATCH_MS)
    with Stack(options, runtime) as stack:
        story = Weather(stack, print)
        try:
            wanted, got = play(story)
        finally:
            story.close()
    assert got == wanted
    assert len(wanted) > 50
    assert all(window.rain > RAIN_MM_AN_HOUR for window in wanted)
    dry = [reading for reading in story.sent if reading.rainrate <= RAIN_MM_AN_HOUR]
    assert len(dry) > 50, "the policy hides something"
