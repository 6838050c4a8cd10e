"""Outputs that began later than the execution that computes them.

An equal query that is added later gets an output in an execution that runs already. The execution
may still have to read tuples from before that: after a crash, or if it is behind. Their results are
not for the later output, which would tell by them that somebody else ran the query before. So each
tuple carries which of the later outputs had begun when it came. Where the execution reads nothing
from before, as nearly always, no tuple carries anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.runs import FedOutput, QueryRun
from secfilter.columns import BEGUN
from secfilter.kafka_options import EARLIEST, Offsets


def late_outputs(run: QueryRun, start: Offsets) -> tuple[FedOutput, ...]:
    """The outputs of the run that began after `start`, from where it reads."""
    return tuple(output for output in run.outputs if _is_late(output, start))


def _is_late(output: FedOutput, start: Offsets) -> bool:
    return any(
        start.get(topic, {}).get(partition, EARLIEST) < offset
        for topic, partitions in output.begins.items()
        for partition, offset in partitions.items()
    )


def begun(late: Sequence[FedOutput], topic: str) -> Column:
    """Which of these outputs had begun when a record of the lab topic came: one bit for each."""
    bits = (
        fn.when(_is_after(output, topic), fn.lit(1 << number)).otherwise(fn.lit(0))
        for number, output in enumerate(late)
    )
    return reduce(lambda a, b: a.bitwiseOR(b), bits, fn.lit(0)).cast("bigint")


def _is_after(output: FedOutput, topic: str) -> Column:
    """Whether a record is behind the output's beginning. All of a later partition is."""
    before = fn.lit(False)
    for partition, offset in output.begins.get(topic, {}).items():
        here = fn.col("partition") == fn.lit(int(partition))
        before = before | (here & (fn.col("offset") < fn.lit(offset)))
    return ~before


def has_begun(number: int) -> Column:
    """Whether the output of that number, among the later ones, had begun when the tuple came."""
    return fn.col(BEGUN).bitwiseAND(fn.lit(1 << number).cast("bigint")) != fn.lit(0)
