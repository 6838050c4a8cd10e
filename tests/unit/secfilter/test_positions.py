"""Offsets of topics that were made a moment ago."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from catalog.errors import Unavailable
from secfilter import positions
from secfilter.positions import Positions


class Answers:
    """Answers as Kafka's client does, at first with errors. Every partition ends at 7."""

    def __init__(self, errors: list[int]) -> None:
        self.errors = errors

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def list_offsets(self, wanted: dict[Any, Any], **_options: Any) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        if self.errors:
            answer.set_exception(KafkaException(KafkaError(self.errors.pop(0))))
        else:
            answer.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(wanted, answer)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Answers:
    answers = Answers([])
    monkeypatch.setattr(positions, "AdminClient", lambda _config: answers)
    return answers


def test_a_partition_without_a_leader_is_asked_for_again(asked: Answers) -> None:
    asked.errors = [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE]
    assert Positions({}).ends(["new"]) == {"new": {0: 7}}
    assert asked.errors == []


def test_it_is_not_asked_for_without_end(asked: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "_TIMEOUT_S", 0.5)
    asked.errors = [KafkaError.NOT_LEADER_FOR_PARTITION] * 1_000
    with pytest.raises(Unavailable, match="NOT_LEADER_FOR_PARTITION"):
        Positions({}).ends(["new"])


def test_any_other_error_is_told_at_once(asked: Answers) -> None:
    asked.errors = [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.NOT_LEADER_FOR_PARTITION]
    with pytest.raises(Unavailable, match="TOPIC_AUTHORIZATION_FAILED"):
        Positions({}).ends(["secret"])
    assert len(asked.errors) == 1
