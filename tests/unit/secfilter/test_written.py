"""On a cluster a tick counts when all before it is committed, and on one machine when flushed."""

from __future__ import annotations

from dataclasses import dataclass, field

from secfilter.stream_time import NO_SENDER, Echo
from secfilter.written import _MOST, ByCommit, ByFlush

LIFE = "ab" * 16


def echo(offset: int, sender: int = 7, partition: int = 0) -> Echo:
    return Echo(LIFE, sender, partition, offset, 1_000 + offset)


@dataclass
class Committed:
    """A checkpoint."""

    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: int = 0

    def __call__(self) -> dict[str, dict[str, int]]:
        self.asked += 1
        return self.ends


def test_a_tick_counts_when_its_batch_is_committed() -> None:
    committed = Committed({"in.a": {"0": 5}})
    written = ByCommit({7: "in.a"}, committed)
    assert written.counting([echo(5)]) == []
    committed.ends = {"in.a": {"0": 6}}
    assert written.counting([]) == [echo(5)]
    assert written.counting([]) == [], "each counts once"


def test_each_partition_and_each_topic_has_its_own_commits() -> None:
    ends = {"in.a": {"0": 9, "1": 3}, "in.b": {"0": 1}}
    written = ByCommit({7: "in.a", 8: "in.b"}, Committed(ends))
    found = written.counting([echo(3), echo(3, partition=1), echo(3, sender=8)])
    assert found == [echo(3)]


def test_what_is_not_known_to_be_committed_does_not_count() -> None:
    assert ByCommit({7: "in.a"}, Committed({})).counting([echo(0)]) == []
    written = ByCommit({7: "in.a"}, Committed({"in.a": {"0": 9}}))
    assert written.counting([echo(0, partition=1)]) == []


def test_a_tick_that_no_task_echoed_counts_at_once() -> None:
    written, alone = ByCommit({7: "in.a"}, Committed()), echo(3, sender=NO_SENDER)
    assert written.counting([alone]) == [alone]


def test_a_source_may_have_the_number_of_no_sender() -> None:
    """The sources of a query are numbered from 0 on."""
    written = ByCommit({NO_SENDER: "lab.a"}, Committed())
    assert written.counting([echo(3, sender=NO_SENDER)]) == []


def test_a_batch_that_does_not_end_costs_a_bounded_memory() -> None:
    committed = Committed()
    written = ByCommit({7: "in.a"}, committed)
    written.counting(echo(offset) for offset in range(2 * _MOST))
    committed.ends = {"in.a": {"0": 2 * _MOST}}
    assert len(written.counting([])) == _MOST


def test_nobody_reads_the_checkpoint_while_nothing_waits() -> None:
    committed = Committed()
    ByCommit({7: "in.a"}, committed).counting([])
    assert committed.asked == 0


def test_all_before_what_counts_is_written() -> None:
    assert ByCommit({}, Committed()).holds()
    for told in (True, False):
        written = ByFlush(lambda told=told: told)  # type: ignore[misc]
        assert written.counting([echo(3)]) == [echo(3)]
        assert written.holds() is told
