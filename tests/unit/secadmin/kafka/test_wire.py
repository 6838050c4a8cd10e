"""Answers of brokers about replicas, as bytes, and the compact forms of the protocol."""

from __future__ import annotations

import pytest

from secadmin.kafka.wire.acl_changes import read_codes, read_deletions
from secadmin.kafka.wire.cluster_view import PartitionView, read_view
from secadmin.kafka.wire.connection import BrokerAddress
from secadmin.kafka.wire.encoding import (
    NO_TAGS,
    Reader,
    compact_length,
    compact_string,
    int8,
    int16,
    int32,
    int64,
    string,
)
from secadmin.kafka.wire.leader_epochs import all_led
from secadmin.kafka.wire.newest_times import read_times
from secadmin.kafka.wire.reassignment import check_reassigned
from secadmin.kafka.wire.topic_deletion import codes_of
from secadmin.kafka.wire.topic_setting import read_altered


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 16_382, 16_383, 2**31 - 2])
def test_compact_lengths(count: int) -> None:
    assert Reader(compact_length(count)).compact_length() == count


def test_a_compact_length_as_the_protocol_has_it() -> None:
    assert compact_length(299) == b"\xac\x02"
    assert Reader(b"\x00").compact_length() == -1
    assert Reader(b"\x00").compact_string() is None
    assert Reader(compact_string("größe")).compact_string() == "größe"


def test_a_compact_length_without_an_end() -> None:
    with pytest.raises(ValueError, match="too long"):
        Reader(b"\xff" * 10).compact_length()


def test_tagged_fields_are_passed_over() -> None:
    reader = Reader(b"\x02" + b"\x00\x01x" + b"\x05\x02yz" + int16(7))
    reader.tags()
    assert reader.int16() == 7


def view(*partitions: bytes, topic_error: int = 0) -> Reader:
    brokers = int32(2) + int32(1) + string("a") + int32(9093) + string(None)
    brokers += int32(3) + string("c") + int32(9095) + string("rack")
    topic = int16(topic_error) + string("out.o.a") + int8(0) + int32(len(partitions))
    cluster = string("id") + int32(1)
    return Reader(int32(0) + brokers + cluster + int32(1) + topic + b"".join(partitions))


def partition(number: int, leader: int, epoch: int, *replicas: int, error: int = 0) -> bytes:
    lists = int32(len(replicas)) + b"".join(map(int32, replicas)) + int32(1) + int32(1) + int32(0)
    return int16(error) + int32(number) + int32(leader) + int32(epoch) + lists


def test_what_a_broker_knows_of_the_cluster() -> None:
    found = read_view(view(partition(0, 1, 5, 1, 2, 3), partition(1, 2, 6, 2, error=5)))
    assert found.brokers == {1: BrokerAddress("a", 9093), 3: BrokerAddress("c", 9095)}
    assert found.topics == {"out.o.a"}
    assert found.partitions == {
        ("out.o.a", 0): PartitionView(1, 5, (1, 2, 3)),
        # Its leader is not alive.
        ("out.o.a", 1): PartitionView(None, 6, (2,)),
    }


def test_a_topic_that_is_not_there() -> None:
    assert read_view(view(topic_error=3)).topics == frozenset()


def test_a_topic_that_cannot_be_described() -> None:
    with pytest.raises(ValueError, match="error 29"):
        read_view(view(topic_error=29))


def moved(error: int = 0, partition_error: int = 0) -> Reader:
    part = int32(0) + int16(partition_error) + compact_string("so") + NO_TAGS
    topic = compact_string("out.o.a") + compact_length(1) + part + NO_TAGS
    return Reader(int32(0) + int16(error) + b"\x00" + compact_length(1) + topic + NO_TAGS)


def test_replicas_that_move() -> None:
    check_reassigned(moved())


@pytest.mark.parametrize(
    ("answer", "told"),
    [(moved(error=41), "41"), (moved(partition_error=39), r"partition 0 of out\.o\.a \(so\)")],
)
def test_replicas_that_do_not_move(answer: Reader, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_reassigned(answer)


def deleted(*topics: tuple[int, int, int]) -> Reader:
    parts = (
        b"\x00" + int64(most) + int64(least) + int16(code) + b"\x00" + NO_TAGS
        for most, least, code in topics
    )
    return Reader(int32(0) + compact_length(len(topics)) + b"".join(parts) + NO_TAGS)


def test_topics_that_are_deleted_by_their_ids() -> None:
    assert codes_of(deleted((-1, 2, 0), (3, -4, 100)), [(3, -4), (-1, 2)]) == [100, 0]


def test_a_topic_of_which_nothing_is_said() -> None:
    with pytest.raises(ValueError, match="nothing of 1 topics"):
        codes_of(deleted((1, 2, 0)), [(1, 2), (1, 3)])


def epochs(*errors: int) -> Reader:
    parts = b"".join(
        int16(error) + int32(n) + int32(4) + int64(9) for n, error in enumerate(errors)
    )
    return Reader(int32(0) + int32(1) + string("out.o.a") + int32(len(errors)) + parts)


def test_who_leads() -> None:
    assert all_led(epochs(0, 0))
    assert not all_led(epochs(0, 75))
    assert not all_led(epochs()), "an answer about nothing proves nothing"


def times(*found: tuple[int, int]) -> Reader:
    parts = b"".join(
        int32(n) + int16(error) + int64(time) + int64(7) + int32(4) + NO_TAGS
        for n, (error, time) in enumerate(found)
    )
    topic = compact_string("out.o.a") + compact_length(len(found)) + parts + NO_TAGS
    return Reader(int32(0) + compact_length(1) + topic + NO_TAGS)


def test_the_newest_times() -> None:
    assert read_times(times((0, 12), (0, -1))) == {("out.o.a", 0): 12, ("out.o.a", 1): -1}
    with pytest.raises(ValueError, match="error 6"):
        read_times(times((0, 12), (6, -1)))


def codes(*found: int) -> Reader:
    parts = b"".join(int16(code) + string("so") for code in found)
    return Reader(int32(0) + int32(len(found)) + parts)


def test_what_became_of_acls_that_were_to_be_made() -> None:
    assert read_codes(codes(0, 31), 2) == [0, 31]
    with pytest.raises(ValueError, match="answers 1 questions, and there were 2"):
        read_codes(codes(0), 2)


def deletions(*found: tuple[int, ...]) -> Reader:
    body = int32(0) + int32(len(found))
    for of_filter, *of_acls in found:
        body += int16(of_filter) + string(None) + int32(len(of_acls))
        for code in of_acls:
            place = int8(2) + string("out.o.a") + int8(3)
            body += int16(code) + string(None) + place
            body += string("User:a") + string("*") + int8(3) + int8(3)
    return Reader(body)


def test_what_became_of_acls_that_were_to_be_deleted() -> None:
    answer = deletions((0,), (0, 0, 0), (31,), (0, 0, 7))
    assert read_deletions(answer, 4) == [0, 0, 31, 7]
    with pytest.raises(ValueError, match="answers 0 questions, and there were 1"):
        read_deletions(deletions(), 1)


def altered(**found: int) -> Reader:
    parts = b"".join(
        int16(code) + string(None) + int8(2) + string(topic) for topic, code in found.items()
    )
    return Reader(int32(0) + int32(len(found)) + parts)


def test_what_became_of_a_setting() -> None:
    assert read_altered(altered(a=0, b=3), {"a": "100", "b": None}) == {"a": 0, "b": 3}
    with pytest.raises(ValueError, match="says nothing of the topic b"):
        read_altered(altered(a=0), {"a": "100", "b": None})
