"""Checked plans: plans with the known properties of each node. `catalog.analysis` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.plan import Emission, Node, Plan, Window, Windowed
from catalog.plan_size import Sizes
from catalog.schema import Schema


class StateKind(StrEnum):
    """The state that a node keeps.

    GROUPS: one value for each open window and keys. PAIRS: the tuples that can still find a
    partner. MOVING: the tuples of a moving window. MATCHES: the rows that a match may still need.
    """

    NONE = "none"
    GROUPS = "groups"
    PAIRS = "pairs"
    MOVING = "moving"
    MATCHES = "matches"


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """A correct node with the properties of its tuples.

    `event_time` is the attribute that holds event time, or None. A tuple lags behind the newest one
    by at most `late_ms` plus `spread_ms`. `late_ms` is the lag of the latest source. `spread_ms` is
    the distance between the results of one tuple, by all joins and patterns together. A tuple that
    the node keeps is in `copies` groups at once. `is_changing` says whether the node gives a
    changing relation, of which ToStream makes a stream. `nodes` and `depth` count the node and the
    tree below it. `sizes` has the size in the engine of each attribute, and `total` that of all
    expressions so far (`catalog.plan_size`).
    """

    node: Node
    inputs: tuple[CheckedNode, ...]
    schema: Schema
    event_time: str | None
    late_ms: int
    spread_ms: int
    state: StateKind
    copies: int
    keeps_state: bool
    is_changing: bool
    nodes: int
    depth: int
    sizes: Sizes = field(repr=False, compare=False)
    total: int = field(repr=False)

    @property
    def delay_ms(self) -> int:
        """How far a tuple may lag behind the newest one, if each result is sent once (ms)."""
        return self.late_ms + self.spread_ms

    def walk(self) -> Iterator[CheckedNode]:
        """All nodes of the tree, inputs first."""
        waiting = [(self, False)]
        while waiting:
            node, ready = waiting.pop()
            if ready:
                yield node
            else:
                waiting.append((node, True))
                waiting.extend((below, False) for below in reversed(node.inputs))


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """A whole query that can run. `plan` is the query as it was analysed."""

    root: CheckedNode
    emission: Emission

    @property
    def plan(self) -> Plan:
        """The plan in the form that is stored."""
        return Plan(self.root.node, self.emission)

    @property
    def schema(self) -> Schema:
        """The attributes of the results."""
        return self.root.schema

    @property
    def event_time(self) -> str | None:
        """The attribute of the results that holds event time, or None."""
        return self.root.event_time

    @property
    def keeps_state(self) -> bool:
        """Whether any node keeps tuples."""
        return self.root.keeps_state

    @property
    def delay_ms(self) -> int:
        """How far a result may lag behind the newest one (ms).

        An update may lag by one more window, because the windows of a tuple end up to one window's
        size apart.
        """
        if self.emission is Emission.CLOSED:
            return self.root.delay_ms
        spread = max(_window_ms(each.node) for each in self.root.walk())
        return self.root.late_ms + max(self.root.spread_ms, spread)

    @property
    def copies(self) -> int:
        """The number of groups that a tuple is in at once, in all nodes together."""
        return sum(each.copies for each in self.root.walk())


def _window_ms(node: Node) -> int:
    if isinstance(node, Windowed) and isinstance(node.window, Window):
        return node.window.size_ms
    return 0
