"""The operators that are written in Python, without Spark: moving windows and event patterns.

Below such an operator Spark computes values of single tuples. Here the oracle computes these. All
else is what an engine runs: the operator with its state, over batches, and the rule of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from catalog.analysis import analyse_node
from catalog.changing_parts import ChangingParts, WindowPart
from catalog.checked_plan import CheckedNode
from catalog.delivery import Delivery
from catalog.expression import Expression
from catalog.label import WORD_BITS, Label
from catalog.match_expressions import MatchExpressions
from catalog.pair_expressions import RowExpressions, values_of_sides
from catalog.plan import (
    Change,
    Filter,
    Match,
    Moving,
    MovingJoin,
    Node,
    Plan,
    Project,
    Source,
    ToStream,
    Union,
    walk,
)
from catalog.reach import reach
from catalog.relation import Relation, RelationKind
from catalog.schema import Schema
from catalog.upserts import keys_of
from secfilter import match, moving
from secfilter.match_rules import match_rules
from secfilter.matching import Matching
from secfilter.moving_relation import MovingRelation
from secfilter.moving_rules import rules_of
from secfilter.moving_window import Arrival, Words
from secfilter.remembered import Remembered
from tests.differential.case import Case, Outcome
from tests.differential.expected import delivered_to, tables_of
from tests.differential.wire import decode, encode
from tests.oracle.expressions import evaluate
from tests.oracle.plans import run
from tests.oracle.values import Row, Tuple, Value, microseconds, timestamp

_WORDS = 4
# Tuples come this late at most, apart from those that come too late (µs).
_LATENESS = 20_000_000
_END = 2**62
_SOURCE = 100


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a case over streams of its own, whose tuples the case's plan gives below it.

    `tables` has the tuples of each stream by its name, and `reaches` what they can carry, by its
    id.
    """

    case: Case
    node: ToStream | Match
    tables: Mapping[str, Sequence[Tuple]]
    reaches: Mapping[int, Label]

    def reach_of(self, relation: Relation) -> Label:
        """What a tuple of the stream can carry."""
        return self.reaches[relation.object_id]

    def expected(self, tables: Mapping[str, Sequence[Tuple]]) -> Outcome:
        """What the oracle finds over these tables."""
        return self._outcome(
            run(self.node, tables, self.reach_of),
            lambda number, results: delivered_to(self.case, self.case.classes[number], results),
        )

    def outcome(self, results: list[Tuple]) -> Outcome:
        """These results, and what the classes take of them by the platform's rule."""

        def taken(number: int, results: list[Tuple]) -> list[Tuple]:
            of = self.case.classes[number]
            rule = Delivery(of.clearance, of.weak, of.beyond, of.ways)
            return [each for each in results if rule.takes(each.label, self.case.sources)]

        return self._outcome(results, taken)

    def _outcome(
        self, results: list[Tuple], deliver: Callable[[int, list[Tuple]], list[Tuple]]
    ) -> Outcome:
        several = range(len(self.case.classes))
        return Outcome(results, tuple(deliver(number, results) for number in several))


def operator_of(case: Case) -> Operator:
    """The operator of the case, which has one."""
    (node,) = (each for each in walk(case.plan.root) if isinstance(each, ToStream | Match))
    below, tables = _Below(case), tables_of(case, case.records)
    made = below.over_streams(node)
    assert isinstance(made, ToStream | Match)
    given = {name: run(each, tables, case.reach_of) for name, each in below.nodes.items()}
    return Operator(case, made, given, below.reaches)


class _Below:
    """Puts streams in the place of what is below an operator."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.nodes: dict[str, Node] = {}
        self.reaches: dict[int, Label] = {}

    def over_streams(self, node: Node) -> Node:
        """The operator with a stream below each window, or below the pattern."""
        match node:
            case Moving() | Match():
                return replace(node, input=self._stream(node.input))
            case MovingJoin():
                sides = [self.over_streams(side) for side in (node.left, node.right)]
                return replace(node, left=sides[0], right=sides[1])
            case Union():
                return Union(tuple(map(self.over_streams, node.inputs)))
            case _:
                whole: Any = node
                changed: Node = replace(whole, input=self.over_streams(whole.input))
                return changed

    def _stream(self, node: Node) -> Source:
        number = _SOURCE + len(self.nodes)
        checked, name = analyse_node(node), f"below{number}"
        self.nodes[name] = node
        self.reaches[number] = reach(Plan(node), self._case.reach_of)
        time = checked.event_time
        return Source(
            Relation(number, name, RelationKind.STREAM, checked.schema, time, 0, public=True)
        )


@dataclass(frozen=True, slots=True)
class _Given:
    """A tuple for the operator: the side on which it comes, and its stream and place there."""

    side: int
    arrival: Arrival
    stream: str
    place: int


@dataclass(frozen=True, slots=True)
class Ran:
    """What an operator gave, and the tables without what came too late for it."""

    results: list[Tuple]
    tables: Mapping[str, Sequence[Tuple]]
    late: int


def run_in_batches(operator: Operator, random: Random) -> Ran:
    """Run the operator over batches in any order, with its state as a text between them.

    Some tuples come too late. The operator must say of no other that it did not take it.
    """
    engine = _Patterns(operator) if isinstance(operator.node, Match) else _Windows(operator)
    order = [(each.arrival.time + random.randint(0, _LATENESS), each) for each in engine.given()]
    late_ones = random.random() < 0.5
    order = [(at + random.choice([0, 0, 0, 4 * _LATENESS * late_ones]), e) for at, e in order]
    waiting = [each for _, each in sorted(order, key=lambda pair: pair[0])]
    results: list[Tuple] = []
    late: set[tuple[str, int]] = set()
    done, newest, withheld = -_END, -_END, 0
    empty: Callable[[], Matching | MovingRelation] = engine.empty
    # Each batch goes to one of two processes.
    processes, kept = [Remembered(10**7), Remembered(10**7)], None
    while waiting:
        size = random.randint(1, len(waiting))
        batch, waiting = waiting[:size], waiting[size:]
        process = random.choice(processes)
        running = process.go_on(operator.case.name, kept, empty)
        for each in batch:
            if each.arrival.time <= done:
                late.add((each.stream, each.place))
            engine.take(running, each)
        newest = max([newest, *(each.arrival.time for each in batch)])
        done = max(done, newest - _LATENESS - 1) if waiting else _END
        results += engine.until(running, done)
        withheld += running.withheld
        kept = process.keep(operator.case.name, running)
        again = empty()
        again.restore(kept)
        assert again.to_text() == kept, operator.case.name
    # A window that never holds a tuple does not say that it was late.
    assert withheld <= len(late), operator.case.name
    tables = {
        name: [each for place, each in enumerate(rows) if (name, place) not in late]
        for name, rows in operator.tables.items()
    }
    return Ran(results, tables, len(late))


class _Windows:
    """The operator of moving windows."""

    def __init__(self, operator: Operator) -> None:
        node = operator.node
        assert isinstance(node, ToStream)
        self._tables, self._schema = operator.tables, analyse_node(node).schema
        self._parts = ChangingParts.of(analyse_node(node.input))
        reaches = [_words(operator.reach_of(_stream_of(each))) for each in self._parts.windows()]
        keys = keys_of(node.input) if node.change is Change.UPSERT else ()
        self._rules = rules_of(self._parts, node.change, moving.MAX_HELD, reaches, keys)

    def empty(self) -> MovingRelation:
        return self._rules.empty()

    def given(self) -> Iterator[_Given]:
        for each in self._parts.relations():
            made = None if each.join is None else RowExpressions(each, each.join)
            for values in values_of_sides(each, made):
                if isinstance(values.side, WindowPart):
                    yield from self._of_window(values.side, values.row, values.arguments)

    def _of_window(
        self, window: WindowPart, shown: Sequence[Expression], arguments: Sequence[Expression]
    ) -> Iterator[_Given]:
        node = window.moving.node
        assert isinstance(node, Moving)
        name = _stream_of(window).name
        for place, row, time, label in _timed(window.moving, self._tables[name]):
            partition = _texts(node.window.partition, row)
            behind, passes = _through(window.steps, row)
            arrival = Arrival(
                *(time, f"{place:05}", label, partition, passes),
                *(_texts(shown, behind), _texts(arguments, behind)),
            )
            yield _Given(window.window, arrival, name, place)

    def take(self, running: Any, each: _Given) -> None:
        running.take([each.arrival], each.side)

    def until(self, running: Any, time: int) -> Iterator[Tuple]:
        shown = Schema(self._schema.attributes[1:])
        for each in running.until(time):
            yield Tuple((timestamp(each.instant), *decode(each.row, shown)), _label(each.label))


class _Patterns:
    """The operator of event patterns."""

    def __init__(self, operator: Operator) -> None:
        node = operator.node
        assert isinstance(node, Match) and isinstance(node.input, Source)
        self._node, self._name = node, node.input.relation.name
        self._checked = analyse_node(node)
        self._rows = operator.tables[self._name]
        given = self._checked.inputs[0].schema
        self._values = MatchExpressions(node, given).values
        self._rules = match_rules(node, given, (), match.MAX_HELD, match.MAX_WAYS)

    def empty(self) -> Matching:
        return self._rules.empty()

    def given(self) -> Iterator[_Given]:
        for place, row, time, label in _timed(self._checked, self._rows):
            partition, arguments = (
                _texts(several, row) for several in (self._node.partition, self._values)
            )
            arrival = Arrival(time, f"{place:05}", label, partition, True, "", arguments)
            yield _Given(0, arrival, self._name, place)

    def take(self, running: Any, each: _Given) -> None:
        running.take([each.arrival])

    def until(self, running: Any, time: int) -> Iterator[Tuple]:
        shown = Schema(self._checked.schema.attributes[1:])
        for each in running.until(time):
            values = decode(each.row, shown) if shown.attributes else ()
            yield Tuple((timestamp(each.time), *values), _label(each.label))


def _stream_of(window: WindowPart) -> Relation:
    node = window.moving.node
    assert isinstance(node, Moving) and isinstance(node.input, Source)
    return node.input.relation


def _timed(above: CheckedNode, tuples: Sequence[Tuple]) -> Iterator[tuple[int, Row, int, Words]]:
    """The place, the row, the time (µs since 1970) and the label of each tuple that has a time."""
    below = above.inputs[0]
    for place, each in enumerate(tuples):
        row = Row(below.schema, each.values)
        time: Any = row[below.event_time or ""]
        assert each.label is not None
        if time is not None:
            yield place, row, microseconds(time), _words(each.label)


def _through(steps: Sequence[CheckedNode], row: Row) -> tuple[Row, bool]:
    """The row behind filters and projections, and whether it passes them."""
    passes = True
    for step in steps:
        match step.node:
            case Filter(_, condition):
                passes = passes and evaluate(condition, row) is True
            case Project(_, columns):
                row = Row(step.schema, tuple(evaluate(c.expression, row) for c in columns))
    return row, passes


def _texts(expressions: Sequence[Expression], row: Row) -> str:
    return encode(tuple(_unsigned(evaluate(each, row)) for each in expressions))


def _unsigned(value: Value) -> Value:
    """Zero and negative zero are one value, so they have one text."""
    return value + 0.0 if isinstance(value, float) else value


def _words(label: Label) -> Words:
    return tuple(label.word(index) for index in range(_WORDS))


def _label(words: Words) -> Label:
    bits = (word % 2**WORD_BITS << WORD_BITS * index for index, word in enumerate(words))
    return Label(sum(bits))
