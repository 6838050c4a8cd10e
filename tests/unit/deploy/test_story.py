"""The story of seed 004: what fails while it is told ends it."""

from pathlib import Path
from typing import cast

import pytest

from deploy.errors import DeployError
from deploy.scenario.person import Person
from deploy.scenario.story import Story
from deploy.stack import Stack


class Idle(Person):
    """A user whose commands do nothing."""

    def run(self, *arguments: str, text: str = "") -> str:
        return ""


class Ended(Person):
    """A user whose commands are ended from outside."""

    def run(self, *arguments: str, text: str = "") -> str:
        raise DeployError("produce ended")


class Told(Story):
    """A story without a broker."""

    def bobs_topic(self) -> str:
        return "out"

    def _end_of(self, topic: str) -> int:
        return 0


def test_a_sender_that_fails_meanwhile_ends_the_story(tmp_path: Path) -> None:
    story = Told(cast("Stack", None), lambda _line: None, quotes={"in2": ()})
    story.people["ed"] = Ended("ed", tmp_path, "", tmp_path)
    story.people["joe"] = Idle("joe", tmp_path, "", tmp_path)
    with pytest.raises(DeployError, match="produce ended"):
        story.revoke_while_sending([2011])
