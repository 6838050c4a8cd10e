"""Which replicas are left when a broker cannot show that an ACL is gone, and where new ones go."""

from __future__ import annotations

import pytest

from catalog.errors import Unavailable
from secadmin.kafka.replicas import (
    REPLENISHED_AT_ONCE,
    check_senders,
    with_new_ones,
    without_unproven,
)
from secadmin.kafka.wire.cluster_view import PartitionView

OUT, SENT = ("out.o.a", 0), ("in.s.a", 0)


def part(*replicas: int, leader: int | None = 1) -> PartitionView:
    return PartitionView(leader, 4, replicas)


def test_all_replicas_that_are_proven_stay() -> None:
    assert without_unproven({OUT: part(1, 2, 3)}, {1, 2, 3}, 2) == {}
    assert without_unproven({OUT: part(1, 2)}, {1, 2, 3}, 2) == {}


def test_a_broker_that_is_not_proven_loses_its_replicas() -> None:
    found = {OUT: part(3, 1, 2), SENT: part(1, 2), ("out.o.b", 1): part(2, 3, 1, leader=3)}
    assert without_unproven(found, {1, 2}, 2) == {OUT: [1, 2], ("out.o.b", 1): [2, 1]}


@pytest.mark.parametrize(
    ("replicas", "proven", "least"),
    [((1, 2, 3), {1}, 2), ((1, 3), {1, 2}, 2), ((3,), {1, 2}, 1), ((1, 2, 3), set(), 1)],
    ids=["two are silent", "one was lost before", "the only one", "nobody answers"],
)
def test_too_few_would_be_left(replicas: tuple[int, ...], proven: set[int], least: int) -> None:
    with pytest.raises(Unavailable, match=r"brokers .*3 do not show .* out\.o\.a are gone"):
        without_unproven({OUT: part(*replicas)}, proven, least)


def test_a_new_replica_goes_to_the_broker_with_the_fewest() -> None:
    found = {("out.o.a", 0): part(1, 2), ("out.o.b", 0): part(2, 3), ("out.o.c", 0): part(1, 2, 4)}
    more = with_new_ones(found, {1, 2, 3, 4}, 3)
    assert more == {("out.o.a", 0): [1, 2, 3], ("out.o.b", 0): [2, 3, 4]}


def test_no_new_replica_without_a_broker_that_is_able_or_without_a_leader() -> None:
    assert with_new_ones({OUT: part(1, 2)}, {1, 2}, 3) == {}
    assert with_new_ones({OUT: part(1, 2, leader=None)}, {1, 2, 3}, 3) == {}


def test_replicas_come_some_at_a_time() -> None:
    found = {(f"out.o.{n:03}", 0): part(1, 2) for n in range(2 * REPLENISHED_AT_ONCE)}
    assert len(with_new_ones(found, {1, 2, 3}, 3)) == REPLENISHED_AT_ONCE


def test_a_sender_needs_all_brokers_that_are_alive() -> None:
    check_senders(["in.s.a"], {1, 2}, {1, 2, 3})
    check_senders(["out.o.a"], {1, 2, 3}, {1, 2})
    with pytest.raises(Unavailable, match=r"brokers 3 do not show"):
        check_senders(["out.o.a", "in.s.a"], {1, 2, 3}, {1, 2})
