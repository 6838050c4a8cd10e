"""What requests may take of the broker's heap, whatever its size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.broker_memory import LONGEST_REQUEST_BYTES, MIB, RequestMemory
from secadmin.kafka.topics import TopicSpec, topic_config


@given(st.integers(512, 64 * 1024))
def test_users_leave_memory_to_the_platform(heap_mb: int) -> None:
    memory = RequestMemory(heap_mb)
    assert memory.users_connections > 0
    assert memory.users_connections * LONGEST_REQUEST_BYTES < memory.pool_bytes
    assert memory.pool_bytes < heap_mb * MIB // 2


@pytest.mark.parametrize("topic", ["in.s", "lab.s", "quarantine.s", "out.q.1"])
def test_the_longest_record_fits(topic: str) -> None:
    longest = int(topic_config(TopicSpec(topic), 1)["max.message.bytes"])
    assert longest + 64 * 1024 < LONGEST_REQUEST_BYTES


def test_a_heap_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 512 MB"):
        RequestMemory(511)
