"""What each node of a plan gives, with which label, what it keeps, and when it sends results.

It is `catalog/SPEC.md` in a few words for each node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from rich.tree import Tree

from catalog.checked_plan import CheckedNode, CheckedPlan
from catalog.placement import Placement
from catalog.plan import (
    Aggregate,
    Change,
    Emission,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Unnest,
    Windowed,
)
from catalog.reach import lowers
from catalog.stable_names import depends_on_others
from secadmin.cli.durations import duration_words
from secadmin.cli.plan_tree import label_text, node_words

NOTHING = "none"
AT_ONCE = "at once"
_STAYS = "stays"
_COUNTED = "of all tuples of its partition that were counted so far"
_FAN_OUT = {
    Placement.SINK: "fan-out here: each delivery class gets the results whose labels it covers",
    Placement.SOURCES: "fan-out above the sources: each delivery class gets what the plan gives "
    "over the tuples whose labels it covers",
    Placement.APART: "a run for each delivery class: it reads only the tuples whose labels the "
    "class covers",
    Placement.ROLES: "fan-out here: each delivery class gets the results whose labels one role of "
    "its subscribers covers alone",
}
_VIEWS_OF_ROLES = (
    "fan-out above the sources: each role of a delivery class has what the plan gives over the "
    "tuples whose labels it covers alone, and the class gets the results of all its roles, each "
    "once"
)
_LIMITED = "200,000 tuples at most"


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node of a plan in words. `inputs` are the nodes that it reads.

    `label` says which label a result has, `state` what the node keeps, and `trigger` when it gives
    a result.
    """

    name: str
    does: str
    attributes: str
    label: str
    state: str
    trigger: str
    inputs: tuple[ExplainedNode, ...] = ()

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What is said of the node, each with its heading."""
        return (
            ("gives", self.attributes),
            ("label", self.label),
            ("state", self.state),
            ("sends", self.trigger),
        )


def explained(
    output: str, plan: CheckedPlan, placement: Placement = Placement.SINK
) -> ExplainedNode:
    """The output of this name with its fan-out, and below it the whole plan."""
    updates = plan.emission is Emission.UPDATES
    return ExplainedNode(
        name="output",
        does=output,
        attributes=_attributes(plan.root),
        label=_VIEWS_OF_ROLES if placement.has_views_of_roles(plan.plan) else _FAN_OUT[placement],
        state=NOTHING,
        trigger="each update of a group" if updates else "each result once",
        inputs=(_explained(plan.root, plan.emission),),
    )


def explanation_tree(node: ExplainedNode) -> Tree:
    """The explanation to print, the output at the top."""
    tree = Tree(label_text(node.name, node.does), highlight=False)
    _fill(tree, node)
    return tree


def _fill(tree: Tree, node: ExplainedNode) -> None:
    for heading, words in node.facts():
        tree.add(label_text("", f"{heading}: {words}"))
    for below in node.inputs:
        _fill(tree.add(label_text(below.name, below.does)), below)


def _explained(checked: CheckedNode, emission: Emission) -> ExplainedNode:
    name, does = node_words(checked.node)
    label, state, trigger = _meaning(checked, emission)
    below = tuple(_explained(each, emission) for each in checked.inputs)
    return ExplainedNode(name, does, _attributes(checked), label, state, trigger, below)


def _attributes(checked: CheckedNode) -> str:
    return ", ".join(
        f"{each.name} {each.type}{'' if each.required else ' or NULL'}"
        for each in checked.schema.attributes
    )


def _meaning(checked: CheckedNode, emission: Emission) -> tuple[str, str, str]:
    """The label rule, the state and the trigger of a node."""
    changing = any(each.is_changing for each in checked.inputs)
    follows = "at each instant that changes it" if changing else AT_ONCE
    match checked.node:
        case Source():
            return "the one with which the tuple came", NOTHING, AT_ONCE
        case Filter() | Project() | Union() | Unnest():
            return _STAYS, NOTHING, follows
        case Windowed():
            return _STAYS, NOTHING, "the aggregate above does"
        case Aggregate():
            return _of_aggregate(checked, checked.node, emission)
        case Join():
            late = duration_words(max(checked.node.upper_ms, -checked.node.lower_ms, 0))
            kept = f"the tuples of each side, for {late} and the lateness"
            return _of_join(checked.node, "of both tuples"), kept, _when_joined(checked.node)
        case Moving(_, window):
            label = _STAYS if window.slide_rows is None else _COUNTED
            return label, f"the tuples of the window, {_LIMITED}", "the stream above does"
        case MovingJoin():
            label = _of_join(checked.node, "of all tuples of the pair")
            return label, f"the pairs of rows, {_LIMITED}", follows
        case Ranked():
            label = (
                "of all rows up to its place"
                if checked.node.by_place
                else "of the rows whose values it shows"
            )
            label += _of_others(checked)
            return label, "the rows of each partition in their order", follows
        case ToStream(_, change):
            return _of_change(change), "that of the moving windows", "when an instant is complete"
        case Match():
            return _of_match(checked.node)
        case _:
            assert_never(checked.node)


def _of_aggregate(
    checked: CheckedNode, node: Aggregate, emission: Emission
) -> tuple[str, str, str]:
    label = "of all tuples of the group"
    if lowers(node, emission) is not None:
        label += ", the declared aggregate's category in place of the source's"
    if not isinstance(node.input, Windowed):
        label += _of_others(checked)
        return label, "a group for each combination of keys", "at each instant that changes it"
    copies = f"; a tuple is in {checked.copies}" if checked.copies > 1 else ""
    state = f"a group for each open window and combination of keys{copies}"
    if emission is Emission.UPDATES:
        return label, state, "each time that tuples have come into the group"
    closes = "when the watermark has passed the window's end"
    if checked.inputs[0].spread_ms:
        # A pair may be as old as its older tuple.
        closes += f" by {duration_words(checked.inputs[0].spread_ms)} at most"
    if node.enough is not None:
        closes += ", if enough independent senders took part"
    return label, state, closes


def _of_others(checked: CheckedNode) -> str:
    """What is added if something that changes says where a row below is."""
    return ", and of all rows below" if depends_on_others(checked) else ""


def _when_joined(node: Join) -> str:
    later = "when the later of both has come"
    if node.kind.keeps_left or node.kind.keeps_right:
        return f"{later}; without a pair, when no partner can come any more"
    return later


def _of_join(node: Join | MovingJoin, rule: str) -> str:
    if node.kind.keeps_left or node.kind.keeps_right:
        return f"{rule}; without a pair, all that the other side can carry is added"
    return rule


def _of_change(change: Change) -> str:
    match change:
        case Change.ISTREAM:
            return "of the tuples of the row"
        case Change.DSTREAM:
            return "of the tuples of the row, and of newer ones that made it go"
        case Change.RSTREAM:
            return "of all tuples in the window"
        case Change.UPSERT:
            return "of all tuples of the row; of a deletion, also of newer ones that made it go"


def _of_match(node: Match) -> tuple[str, str, str]:
    label = "of all rows at which the pattern was tried until the match was certain"
    if node.absent:
        label += f", and all that {', '.join(node.absent)} can carry"
    within = duration_words(node.within_ms)
    sent = "when it is certain"
    if node.per_row:
        sent += ", all rows of a match together"
    if node.rows_ahead:
        label += f", and of {node.rows_ahead} rows behind them (NEXT)"
        sent += f"; NEXT waits for later rows, up to {within}"
    return label, f"the rows of the last {within}, 50,000 in a bucket", sent
