"""A stream of a diagram: its plan, how it counts time, and what its order depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secadmin.languages.borealis.clock import Clock, common_clock
from secadmin.languages.building import Built


@dataclass(frozen=True, slots=True)
class Flow:
    """What a box or an input writes.

    `clock` is None if the flow comes from inputs with different clocks. `sorted_by` is the name of
    a bsort box whose order the tuples would still have in Borealis, or None.
    """

    built: Built
    clock: Clock | None
    sorted_by: str | None = None


def after(inputs: Sequence[Flow], built: Built, *, keeps_order: bool) -> Flow:
    """The flow that a box makes of its inputs. `keeps_order` is false for boxes with a state."""
    orders = [each.sorted_by for each in inputs if each.sorted_by] if keeps_order else []
    clock = common_clock(each.clock for each in inputs)
    return Flow(built, clock, orders[0] if orders else None)
