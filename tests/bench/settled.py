"""How long until a run that was just changed has the longer batches of what stays as it is."""

from __future__ import annotations

from secfilter.pace import SPREAD, Pace

_PACE = Pace()
# The time without a change, and the rest of a short batch, each as long as it may be; some more.
SETTLED_S = (_PACE.settle_ms + _PACE.new_ms) / 1000 * (1 + SPREAD) + 5
