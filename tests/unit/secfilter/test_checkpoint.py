"""Checkpoints: what one says of the topics it began with."""

from __future__ import annotations

from pathlib import Path

import pytest

from secfilter.checkpoint import Checkpoints
from secfilter.kafka_options import Offsets


@pytest.mark.parametrize(
    ("start", "narrow"),
    [
        ({"lab.a": {"0": 5}}, True),
        ({"lab.a": {"0": 5}, "lab.b": {"0": -2}}, True),
        ({"lab.a": {"0": 5}, "lab.b": {"0": -2, "1": -2}}, False),
        (None, False),
    ],
)
def test_narrow_where_each_topic_had_one_partition(
    tmp_path: Path, start: Offsets | None, narrow: bool
) -> None:
    made = Checkpoints(tmp_path).renew("query-1", "shape", start)
    assert made.narrow() is narrow
    again = Checkpoints(tmp_path).current("query-1", "shape")
    assert again is not None
    assert again.narrow() is narrow


def test_of_two_sources_of_one_topic_the_one_behind_counts(tmp_path: Path) -> None:
    """What only the other one has read is read again."""
    made = Checkpoints(tmp_path).renew("query-1", "shape", {"lab.a": {"0": 0, "1": 0}})
    lines = ['{"lab.a":{"0":5,"1":2}}', "-", '{"lab.a":{"0":3,"1":4},"lab.b":{"0":1}}']
    for log, text in (("offsets", "\n".join(["v1", "{}", *lines])), ("commits", "v1\n{}")):
        (made.spark / log).mkdir(parents=True)
        (made.spark / log / "0").write_text(text)
    assert made.committed() == {"lab.a": {"0": 3, "1": 2}, "lab.b": {"0": 1}}
