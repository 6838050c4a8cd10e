"""The length and the size of the batches of runs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from catalog.errors import InvalidInput
from catalog.runs import IngestRun, Run

# Options with this prefix are SecFilter's own. All others are Spark's.
OWN = "secfilter."
# Batches differ by at most this part of their length. The times until a run is steady do too.
SPREAD = 0.25
# A batch may end this much later than planned on a busy machine.
_LATE_S = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """The shortest lengths of batches, in milliseconds, and the largest size of a micro-batch.

    The end of a real-time batch is where a query can be restarted without loss or repetition, and
    what costs latency: everything of the query stands still while the next batch is planned. What
    has just changed is likely to change again soon (the classes of a new query), so its batches
    last `new_ms`; once a run has been left as it is for `settle_ms`, they last `query_ms`, or
    `ingest_ms`.

    The main run of ingest waits until the batch of its side run has ended (`ingest_side_ms`). The
    side run of a query is ended inside its batch (`side_ms`). A batch must last longer than Spark
    needs to begin it: Spark plans when it ends before its tasks begin, and they read nothing if
    they come later. In an engine that is young or has much to do this takes more than a second.

    `tick_ms` is the shortest time between two ticks of a stream (`secfilter.ticker`).

    Every `past_ms` an engine for queries deletes the checkpoints of removed ones
    (`secfilter.past_checkpoints`).

    A micro-batch reads `microbatch_records` records of all its sources together, and the others
    later (`secfilter.backlog`).
    """

    query_ms: int = 60_000
    ingest_ms: int = 60_000
    new_ms: int = 10_000
    settle_ms: int = 120_000
    microbatch_ms: int = 100
    microbatch_records: int = 100_000
    side_ms: int = 3_000
    ingest_side_ms: int = 500
    tick_ms: int = 1_000
    past_ms: int = 60_000

    def real_time_ms(self, run: Run, *, settled: bool) -> int:
        """The batch length of a run under the real-time trigger.

        The lengths of runs differ a little. Otherwise all runs could stop at the same moment.
        """
        return _spread(self._shortest_ms(run, settled=settled), run.name)

    def beside_ms(self, run: Run) -> int:
        """The batch length of a side run."""
        return self.ingest_side_ms if isinstance(run, IngestRun) else self.side_ms

    def lengthens(self, run: Run) -> bool:
        """Whether a run under the real-time trigger gets longer batches after it has settled."""
        return self._shortest_ms(run, settled=True) > self._shortest_ms(run, settled=False)

    def _shortest_ms(self, run: Run, *, settled: bool) -> int:
        longest = self.ingest_ms if isinstance(run, IngestRun) else self.query_ms
        return longest if settled else min(self.new_ms, longest)

    def settle_s(self, name: str) -> float:
        """The seconds without a change after which the run of that name counts as settled."""
        return _spread(self.settle_ms, name) / 1000

    def of_ingest_side(self) -> Pace:
        """The same for a side run of ingest: its batch is waited for no longer than it lasts."""
        return replace(self, query_ms=self.ingest_side_ms, ingest_ms=self.ingest_side_ms)

    @property
    def patience_s(self) -> float:
        """How long to wait for the end of any batch, in seconds."""
        return max(self.query_ms, self.ingest_ms) / 1000 * (1 + SPREAD) + _LATE_S


# On a cluster a tick counts when its batch has ended (`secfilter.written`). So windows would close
# a minute later with the usual lengths.
ON_CLUSTER = Pace(query_ms=5_000, ingest_ms=5_000)


def _spread(least_ms: int, name: str) -> int:
    return int(least_ms * (1 + SPREAD * (zlib.crc32(name.encode()) % 1_000 / 1_000)))


def pace_of(options: Mapping[str, str], usual: Pace | None = None) -> Pace:
    """The pace by options such as `secfilter.query_ms = "60000"`, or else as `usual`.

    Raises InvalidInput for any other option.
    """
    known = [field.name for field in fields(Pace)]
    own: dict[str, int] = {}
    for key, value in options.items():
        name = key.removeprefix(OWN)
        if name == key:
            continue
        if name not in known:
            raise InvalidInput(f"there is no option {key!r}; there are {OWN}{{{','.join(known)}}}")
        if not (str(value).isascii() and str(value).isdecimal()):
            raise InvalidInput(f"the option {key} is {value!r}, and not a whole number")
        own[name] = int(value)
    return replace(usual or Pace(), **own)
