"""The part of a fake query that is the same for all: how it ends, and what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secfilter.kafka_options import Offsets


@dataclass(kw_only=True)
class Stoppable:
    """Ends at the end of a batch where it was asked to, or in the middle."""

    hurried: bool = False
    # Whether Spark has planned it.
    planned: bool = True
    asked: bool = False
    over: bool = False
    error: BaseException | None = None
    proven: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def crash(self) -> None:
        """End in the middle."""
        self.over, self.error = True, self.error or ValueError()

    def flows(self) -> bool:
        return self.planned

    def ended(self) -> bool:
        return self.over

    def failure(self) -> BaseException | None:
        return self.error

    def request_stop(self) -> None:
        self.asked = True

    def stop(self) -> None:
        self.over = True

    def withheld(self) -> Mapping[str, int]:
        counts, self.counts = self.counts, {}
        return counts

    def proven_ms(self) -> int | None:
        return self.proven

    def is_through(self, ends: Offsets) -> bool:
        return False
