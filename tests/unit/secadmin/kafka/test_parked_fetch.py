"""Which answers to a parked fetch prove that the log rolled."""

from __future__ import annotations

import pytest

from secadmin.kafka.wire.encoding import Reader, int16, int32, int64, octets, string
from secadmin.kafka.wire.parked_fetch import FetchPlace, holds_records

PLACE = FetchPlace("out.o.a", 2, 7)


def _answer(
    throttled: int = 0,
    error: int = 0,
    partition: int = 2,
    partition_error: int = 0,
    elsewhere: int = -1,
    records: bytes = b"a record",
) -> Reader:
    head = int32(throttled) + int16(error) + int32(0) + int32(1) + string("out.o.a") + int32(1)
    offsets = int64(8) * 3
    aborted = int32(1) + int64(1) + int64(2)
    part = int32(partition) + int16(partition_error) + offsets + aborted + int32(elsewhere)
    return Reader(head + part + octets(records))


def test_a_record_of_the_place_is_proof() -> None:
    assert holds_records(_answer(), PLACE)


def test_no_record_is_no_proof_and_asked_again() -> None:
    assert not holds_records(_answer(records=b""), PLACE)


@pytest.mark.parametrize(
    "answer",
    [
        _answer(throttled=1),
        _answer(error=1),
        _answer(partition=0),
        _answer(partition_error=29),
        _answer(elsewhere=3),
        Reader(b""),
    ],
    ids=["throttled", "error", "other partition", "denied", "redirected", "cut off"],
)
def test_everything_else_is_an_error(answer: Reader) -> None:
    with pytest.raises(ValueError, match=r"^the (broker|answer)"):
        holds_records(answer, PLACE)
