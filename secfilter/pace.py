"""How long the batches of the data plane last."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from catalog.runs import IngestRun, Run

# By how much of their length batches differ at most.
_SPREAD = 0.25
# How much later than it should a batch may end on a busy machine.
_LATE_S = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long batches last at least, in milliseconds.

    The end of a real-time batch is where a query can be restarted without loss or repetition, and
    what costs latency: everything of the query stands still while the next batch is planned.
    Queries change more often (a new class) than groups of streams, whose boundary costs more.
    """

    query_ms: int = 22_000
    ingest_ms: int = 30_000
    microbatch_ms: int = 100

    def real_time_ms(self, run: Run) -> int:
        """The batch length of a run under the real-time trigger.

        No two runs have quite the same: boundaries that meet stop everything at once.
        """
        base = self.ingest_ms if isinstance(run, IngestRun) else self.query_ms
        spread = zlib.crc32(run.name.encode()) % 1_000 / 1_000
        return int(base * (1 + _SPREAD * spread))

    @property
    def patience_s(self) -> float:
        """How long, in seconds, to wait for the end of a batch, whichever it is."""
        return max(self.query_ms, self.ingest_ms) / 1000 * (1 + _SPREAD) + _LATE_S
