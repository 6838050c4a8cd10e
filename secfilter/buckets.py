"""Runs an operator of ours in Spark: once for each bucket of rows, with one text as its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from secfilter.class_views import ClassViews
from secfilter.columns import CLASS
from secfilter.moving_arrivals import BUCKET
from secfilter.timeline import SHIFT_MS

_STATE = "state string"
# A class is looked for at least once in so much of the stream's time. If it is closed, its state is
# given up.
_LOOKED_FOR_MS = 3_600_000


class Operator(Protocol):
    """What Spark calls for each bucket that has rows, or in which a time is over."""

    def __call__(
        self, key: tuple[Any, ...], frames: Iterable[Any], state: GroupState, /
    ) -> Iterator[Any]:
        """The results of a batch in a stream, as frames."""
        ...

    def at_once(self, frame: Any) -> Any:
        """The results of rows after which no others come."""
        ...


@dataclass(frozen=True, slots=True)
class _ForEachClass:
    """An operator that has buckets of its own for each class. Each result has its class.

    `living` are the ids of the classes that get results now.
    """

    operator: Operator
    living: frozenset[int]

    def __call__(
        self, key: tuple[Any, ...], frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        of, *bucket = key
        if of not in self.living:
            if state.exists:
                state.remove()
            return
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + _LOOKED_FOR_MS)
        for frame in self.operator(tuple(bucket), frames, state):
            yield frame.assign(**{CLASS: of})

    def at_once(self, frame: Any) -> Any:
        return self.operator.at_once(frame).assign(**{CLASS: frame[CLASS].iloc[0]})


def run_in_buckets(
    operator: Operator, given: DataFrame, output: str, views: ClassViews | None
) -> DataFrame:
    """The results of an operator over rows with the column `BUCKET`. `output` has their columns.

    With views, the rows and the results have their class.
    """
    if views is None:
        return _run(operator, given, output, [BUCKET])
    apart = _ForEachClass(operator, views.ids)
    return _run(apart, given, f"{output}, {CLASS} bigint", [CLASS, BUCKET])


def _run(operator: Operator, given: DataFrame, output: str, keys: list[str]) -> DataFrame:
    buckets = given.groupBy(*keys)
    if not given.isStreaming:
        # Spark counts the parameters, also the one of a method that is bound already.
        at_once = lambda frame: operator.at_once(frame)  # noqa: E731, PLW0108
        return buckets.applyInPandas(at_once, output)
    timeout = GroupStateTimeout.EventTimeTimeout
    return buckets.applyInPandasWithState(operator, output, _STATE, "append", timeout)


def kept_text(state: GroupState) -> str | None:
    """The text that was kept for the bucket, or None if there is none."""
    if not state.exists:
        return None
    (text,) = state.get
    return str(text)


def complete_until(state: GroupState) -> int:
    """The time before which all rows have come, in microseconds since 1970."""
    watermark_ms: int = state.getCurrentWatermarkMs()
    return (watermark_ms - SHIFT_MS) * 1_000


def keep(state: GroupState, text: str, following: int | None) -> None:
    """Keep the text. The operator is called again when `following` is over (us since 1970)."""
    state.update((text,))
    call_again(state, following)


def call_again(state: GroupState, following: int | None) -> None:
    """Let the operator be called again when `following` is over. What is kept stays."""
    if following is not None:
        # A timeout comes when the watermark is later than its time.
        place_ms = following // 1_000 + SHIFT_MS
        state.setTimeoutTimestamp(max(place_ms, state.getCurrentWatermarkMs() + 1))


def frame_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> Any:
    """A frame of pandas with these rows."""
    # Only operators need pandas. To import it takes a third of the start of an engine.
    import pandas as pd  # noqa: PLC0415

    return pd.DataFrame(rows, columns=list(columns))


def joined(frames: Sequence[Any]) -> Any:
    """One frame of several. There is at least one."""
    import pandas as pd  # noqa: PLC0415

    return pd.concat(frames)
