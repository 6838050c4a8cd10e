"""Where reading goes on after a rebalance."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from secadmin.cli.kafka.positions import Positions

OLD, NEW = TopicPartition("out.a.c1", 0), TopicPartition("out.a.c2", 0)


def offsets(positions: Positions, *assigned: TopicPartition) -> list[int]:
    return [p.offset for p in positions.starts(assigned, lambda _: 17)]


def test_from_the_beginning() -> None:
    assert offsets(Positions(from_end=False), OLD) == [OFFSET_BEGINNING]


def test_after_a_rebalance_reading_goes_on_where_it_was() -> None:
    positions = Positions(from_end=False)
    offsets(positions, OLD)
    positions.read("out.a.c1", 0, 41)
    assert offsets(positions, OLD, NEW) == [42, OFFSET_BEGINNING]


@pytest.mark.parametrize("first", [[], [OLD]])
def test_only_what_is_there_at_first_is_read_from_its_end(first: list[TopicPartition]) -> None:
    positions = Positions(from_end=True)
    offsets(positions, *first)
    assert offsets(positions, OLD) == [17]
    assert offsets(positions, OLD, NEW) == [17, OFFSET_BEGINNING]
