"""Outputs that do not get all results of the execution that computes them.

An equal query that is added later gets an output in an execution that runs already. The execution
may still have to read tuples from before that: after a crash, or if it is behind. Their results are
not for the later output, which would tell by them that somebody else ran the query before. The same
holds for the members of a fused run, which may have come to different places (`secfilter.seats`).
So each tuple carries which of the later outputs had begun when it came. Where the execution reads
nothing from before, as nearly always, no tuple carries anything.

A query that keeps state has no later outputs. But an output may move from one execution to another,
and each delivers a part of its results (`catalog.moves`). The event time of a result says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.runs import FedOutput, QueryRun
from secfilter.columns import BEGUN, PART, attribute
from secfilter.kafka_options import EARLIEST, Offsets

# A word has a sign, which is not used.
_BITS = 63


@dataclass(frozen=True, slots=True)
class Parts:
    """Results, and for each output that moves the column that says which of them it gets."""

    results: DataFrame
    columns: Mapping[str, str]


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
    """Which of these outputs had begun when a record of the lab topic came.

    It is one bit for each different beginning, in as many words as that takes.
    """
    begins = _beginnings(late)
    places = range(0, len(begins), _BITS)
    words = [_word(begins[first : first + _BITS], topic) for first in places]
    return fn.array(*words)


def _word(begins: Sequence[Offsets], topic: str) -> Column:
    bits = (
        fn.when(_is_after(each, topic), fn.lit(1 << bit)).otherwise(fn.lit(0))
        for bit, each in enumerate(begins)
    )
    return reduce(lambda a, b: a.bitwiseOR(b), bits, fn.lit(0)).cast("bigint")


def _beginnings(late: Sequence[FedOutput]) -> list[Offsets]:
    """The different beginnings of these outputs, in their order."""
    found: list[Offsets] = []
    for output in late:
        if output.begins not in found:
            found.append(output.begins)
    return found


def _is_after(begins: Offsets, topic: str) -> Column:
    """Whether a record is behind a beginning. All of a later partition is."""
    before = fn.lit(False)
    for partition, offset in begins.get(topic, {}).items():
        here = fn.col("partition") == fn.lit(int(partition))
        before = before | (here & (fn.col("offset") < fn.lit(offset)))
    return ~before


def having_begun(late: Sequence[FedOutput]) -> dict[str, Column]:
    """For each of these outputs, by its name, whether it had begun when the tuple came."""
    begins = _beginnings(late)
    return {each.relation.name: _has_begun(begins.index(each.begins)) for each in late}


def _has_begun(number: int) -> Column:
    word, bit = divmod(number, _BITS)
    return fn.get(BEGUN, fn.lit(word)).bitwiseAND(fn.lit(1 << bit).cast("bigint")) != fn.lit(0)


def with_parts(results: DataFrame, run: QueryRun, event_time: str | None) -> Parts:
    """The results, with a column that says of each whether it is in the part of an output.

    A result without a time is in each part: to come twice is better than to be lost. It is in no
    backfill, because nothing says that all it depends on was read.
    """
    columns = {
        each.relation.name: fn.coalesce(_is_within(each, event_time), fn.lit(not run.backfill))
        for each in run.outputs
        if (each.after_ms, each.until_ms) != (None, None)
    }
    if not columns:
        return Parts(results, {})
    names = {output: f"{PART}{number}" for number, output in enumerate(columns)}
    made = (column.alias(names[output]) for output, column in columns.items())
    return Parts(results.select("*", *made), names)


def _is_within(output: FedOutput, event_time: str | None) -> Column:
    if event_time is None:
        raise ValueError("an output moves whose results have no event time")
    within, time = fn.lit(True), fn.unix_micros(attribute(event_time))
    if output.after_ms is not None:
        within = within & (time > fn.lit(output.after_ms * 1_000))
    if output.until_ms is not None:
        within = within & (time <= fn.lit(output.until_ms * 1_000))
    return within
