"""Random plans that are right (`catalog.analysis.analyse`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from catalog.aggregates import (
    ALL_AGGREGATE_FUNCTIONS,
    COUNT_DISTINCT,
    DECLARABLE_FUNCTIONS,
    FIRST,
    LAST,
)
from catalog.analysis import analyse_node
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregation,
    Column,
    Filter,
    Join,
    JoinKind,
    Moving,
    Node,
    Project,
    SessionWindow,
    Source,
    Union,
    Window,
)
from catalog.relation import Relation
from catalog.schema import Schema, Type, held_as
from tests.differential import make_matching, make_moving
from tests.differential.make_expression import Expressions
from tests.differential.make_records import Records
from tests.plans import grouped

_INEXACT = ("sum", "avg", "stddev")


@dataclass(slots=True)
class Plans:
    """Makes plans; the relations that they read are kept in `relations`."""

    random: Random
    expressions: Expressions
    records: Records
    prefix: str
    relations: list[Relation] = field(default_factory=list)
    # Doubles of aggregates are right to some digits: nothing is computed from them.
    inexact: set[str] = field(default_factory=set)

    def make(self, nodes: int, stateful: bool) -> Node:
        """A plan of about `nodes` nodes, with windows and joins where `stateful`."""
        if nodes <= 1:
            return self._source()
        kinds = ["filter", "project", "union"]
        if stateful:
            kinds += ["aggregate", "join"] * 3
        match self.random.choice(kinds):
            case "filter":
                return self._filter(self.make(nodes - 1, stateful))
            case "project":
                return self.project(self.make(nodes - 1, stateful))
            case "union":
                first = self.make(nodes // 2, stateful)
                return self._union(first, self.make(nodes - nodes // 2 - 1, stateful))
            case "aggregate":
                straight = self.random.random() < 0.4
                made = self._aggregate(self.make(1 if straight else nodes - 1, stateful=False))
                return self._aggregate(made) if self.random.random() < 0.2 else made
            case _:
                first = self.make(max(1, nodes // 2 - 1), stateful=False)
                return self._join(first, self.make(nodes // 2, stateful=False))

    def make_chain(self, source: Source, nodes: int) -> Node:
        """A plan of so many filters and projections over that source."""
        made: Node = source
        for _ in range(nodes):
            made = self.project(made) if self.random.random() < 0.5 else self._filter(made)
        return made

    def make_mixed(self, nodes: int) -> Node:
        """A plan of about `nodes` nodes in which windows and joins go over each other."""
        kinds = ["aggregate", "join"]
        match self.random.choice([*kinds, *kinds, "filter", "project"] if nodes > 2 else kinds):
            case "aggregate":
                return self._aggregate(self.make_mixed(nodes - 1) if nodes > 2 else self._source())
            case "join":
                other = 2 if nodes > 4 and self.random.random() < 0.5 else 1
                mine = nodes - 1 - other
                sides = [self.make_mixed(n) if n > 1 else self._source() for n in (mine, other)]
                self.random.shuffle(sides)
                return self._join(*sides)
            case "filter":
                return self._filter(self.make_mixed(nodes - 1))
            case _:
                return self.project(self.make_mixed(nodes - 1))

    def make_moving(self, nodes: int) -> Node:
        """A plan of about `nodes` nodes and a moving window, or a union or a join of several."""
        if nodes > 3:
            above = self._filter if self.random.random() < 0.5 else self.project
            return above(self.make_moving(nodes - 1))
        if nodes == 3:
            return self._union(self._moving(), self.make(1, stateful=False))
        return self._moving()

    def _moving(self) -> Node:
        windows: list[Moving] = []
        while len(windows) < 3:
            below = self.make(self.random.choice([1, 1, 2, 3]), stateful=False)
            if make_moving.goes_under_a_window(below):
                windows.append(make_moving.moving(self.random, below))

        def make(kind: Type, schema: Schema) -> Expression:
            return self.expressions.make(kind, schema, 2)

        relation = None
        shape = self.random.random()
        if shape < 0.6:
            several = windows[: 3 if shape < 0.2 else 2]
            relation = make_moving.joined(self.random, several, make)
        elif shape < 0.75:
            relation = make_moving.united(self.random, windows[0])
        stream = make_moving.stream(self.random, relation or windows[0], make)
        # Nothing is computed from aggregates of doubles.
        self.inexact |= {"g0", "g1"}
        return stream

    def make_matching(self, nodes: int) -> Node:
        """A plan of about `nodes` nodes and an event pattern."""
        if nodes > 2:
            above = self._filter if self.random.random() < 0.3 else self.project
            return above(self.make_matching(nodes - 1))
        while True:
            below = self.make(self.random.choice([1, 1, 2, 3]), stateful=False)
            if make_moving.goes_under_a_window(below):
                break

        def make(kind: Type, schema: Schema) -> Expression:
            return self.expressions.make(kind, schema, 2)

        return make_matching.matching(self.random, below, make)

    def _source(self) -> Node:
        # The same relation twice is a case of its own.
        if self.relations and self.random.random() < 0.3:
            return Source(self.random.choice(self.relations))
        self.relations.append(self.records.relation(f"{self.prefix}-{len(self.relations)}"))
        return Source(self.relations[-1])

    def _usable(self, node: Node) -> Schema:
        """The attributes that expressions may be made of."""
        schema = analyse_node(node).schema
        return Schema(tuple(a for a in schema.attributes if a.name not in self.inexact))

    def _filter(self, node: Node) -> Node:
        condition = self.expressions.make(Type.BOOLEAN, self._usable(node), 3)
        if self.random.random() < 0.4:
            # Most random conditions are false or NULL.
            condition = Call(
                "coalesce", (Call("not", (condition,)), Literal(value=True, type=Type.BOOLEAN))
            )
        return Filter(node, condition)

    def project(self, node: Node) -> Node:
        """Some attributes under their names, and new ones; names are plain."""
        schema, time = analyse_node(node).schema, analyse_node(node).event_time
        kept = [n for n in schema.names if n == time or self.random.random() < 0.5]
        columns = [Column(name.replace("r.", "r_"), AttributeRef(name)) for name in kept]
        for index in range(self.random.randint(0 if columns else 1, 2)):
            kind = self.random.choice(list(Type))
            made = self.expressions.make(kind, self._usable(node), 3)
            columns.append(Column(f"n{len(schema.names)}_{index}", made))
        unique = {column.name: column for column in columns}
        self.inexact |= {f"r_{n[2:]}" for n in self.inexact if n.startswith("r.")}
        return Project(node, tuple(unique.values()))

    def _union(self, first: Node, second: Node) -> Node:
        usable, time = self._usable(second), analyse_node(second).event_time
        columns = []
        for attribute in analyse_node(first).schema.attributes:
            made: Expression = self.expressions.make(held_as(attribute.type), usable, 1)
            if attribute.name == analyse_node(first).event_time and time is not None:
                made = AttributeRef(time)
            columns.append(Column(attribute.name, made))
        inputs: tuple[Node, Node] = (first, Project(second, tuple(columns)))
        return Union(inputs if self.random.random() < 0.5 else inputs[::-1])

    def _aggregate(self, node: Node) -> Node:
        if analyse_node(node).event_time is None:
            return self._filter(node)
        declared = node.relation.declared if isinstance(node, Source) else None
        usable = self._usable(node)
        window = self._window()
        keys = [self.random.choice(usable.names) for _ in range(self.random.randint(0, 2))]
        taken = {name for name in keys if name not in (WINDOW_START, WINDOW_END)}
        plain = declared is not None and self.random.random() < 0.8
        if plain and declared is not None:
            window = Window(declared.window_ms, declared.window_ms)
            taken = set(declared.keys)
        columns = tuple(Column(f"k_{name}", self._key(name, plain)) for name in sorted(taken))
        functions = sorted(DECLARABLE_FUNCTIONS) if plain else list(ALL_AGGREGATE_FUNCTIONS)
        if isinstance(window, SessionWindow):
            functions.remove(COUNT_DISTINCT)
        if analyse_node(node).keeps_state and not plain:
            # The order of results of one window is not said.
            functions = [each for each in functions if each not in (FIRST, LAST)]
        results = [self._aggregation(i, functions, usable) for i in range(3)]
        return grouped(node, window, columns, tuple(results))

    def _window(self) -> Window | SessionWindow:
        size = self.random.choice([1000, 10_000, 60_000])
        if self.random.random() < 0.2:
            return SessionWindow(size)
        slide = self.random.choice([size, size // 2, size // 5])
        return Window(size, slide, self.random.choice([0, 0, 1, slide // 3]))

    def _key(self, name: str, plain: bool) -> Expression:
        reference = AttributeRef(name)
        if plain or self.random.random() < 0.8:
            return reference
        return Call("is_null", (reference,))

    def _aggregation(self, index: int, functions: list[str], usable: Schema) -> Aggregation:
        attribute = self.random.choice(usable.attributes)
        fitting = [name for name in functions if ALL_AGGREGATE_FUNCTIONS[name](attribute.type)]
        function = self.random.choice(fitting)
        name = f"g{len(self.inexact)}_{index}"
        if function == "count" and self.random.random() < 0.5:
            return Aggregation(name, function, None)
        if (
            ALL_AGGREGATE_FUNCTIONS[function](attribute.type) is Type.DOUBLE
            and function in _INEXACT
        ):
            self.inexact.add(name)
        return Aggregation(name, function, AttributeRef(attribute.name))

    def _join(self, left: Node, right: Node) -> Node:
        # The right side's names get a prefix, which those of a join have already.
        left, right = (
            self.project(side) if any("." in n for n in analyse_node(side).schema.names) else side
            for side in (left, right)
        )
        self.inexact |= {f"r.{name}" for name in self.inexact}
        mine, other = self._usable(left), self._usable(right)
        sides = [analyse_node(left), analyse_node(right)]
        pairs = [
            (AttributeRef(a.name), AttributeRef(f"r.{b.name}"))
            for a in mine.attributes
            for b in other.attributes
            if a.type is b.type and sides[0].event_time != a.name
        ]
        if any(side.event_time is None for side in sides) or not pairs:
            return self._union(left, right)
        renamed = Project(
            right, tuple(Column(f"r.{n}", AttributeRef(n)) for n in sides[1].schema.names)
        )
        equal = tuple(
            self.random.sample(pairs, 1 if self.random.random() < 0.8 else min(2, len(pairs)))
        )
        lower = self.random.choice([-120_000, -60_000, -1000, 0])
        upper = self.random.choice([0, 500, 30_000, 120_000])
        if all(side.keeps_state for side in sides) and self.random.random() < 0.5:
            lower = upper = 0
        both = Schema((*mine.attributes, *self._usable(renamed).attributes))
        condition = None
        if self.random.random() < 0.3:
            condition = self.expressions.make(Type.BOOLEAN, both, 2)
        kind = self.random.choice([JoinKind.INNER, *JoinKind])
        return Join(left, renamed, equal, lower, upper, condition, kind)
