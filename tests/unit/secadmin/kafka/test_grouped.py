"""Requests of several threads go in one, and each gets its own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from secadmin.kafka.grouped import Grouped


def test_what_waits_goes_in_one_request() -> None:
    sent: list[list[int]] = []
    first, go_on = Event(), Event()

    def send(items: Sequence[int]) -> list[int | Exception]:
        sent.append(sorted(items))
        if len(sent) == 1:
            first.set()
            assert go_on.wait(60)
        return [ValueError(str(item)) if item == 3 else 10 * item for item in items]

    grouped = Grouped(send)
    with ThreadPoolExecutor(5) as pool:
        runs = [pool.submit(grouped.run, [0])]
        assert first.wait(60)
        runs += [pool.submit(grouped.run, [number]) for number in range(1, 5)]
        while len(grouped._waiting) < 4:
            pass
        go_on.set()
    assert sent == [[0], [1, 2, 3, 4]]
    failed = [number for number, run in enumerate(runs) if run.exception()]
    assert failed == [3]
    assert [run.result() for run in runs if not run.exception()] == [[0], [10], [20], [40]]


def test_a_request_that_fails_fails_for_all_and_the_next_goes_on() -> None:
    answers: list[Exception | None] = [RuntimeError("broken"), None]

    def send(items: Sequence[int]) -> list[None]:
        if failure := answers.pop(0):
            raise failure
        return [None] * len(items)

    grouped = Grouped(send)
    with pytest.raises(RuntimeError, match="broken"):
        grouped.run([1, 2])
    grouped.run([1, 2])


def test_nothing_to_send() -> None:
    Grouped[int, None](lambda items: [None for _ in items]).run([])
