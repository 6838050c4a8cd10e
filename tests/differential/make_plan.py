"""Random plans that `check_plan` accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.functions import AGGREGATE_FUNCTIONS, DECLARABLE_FUNCTIONS
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
    Window,
    is_stateful,
)
from catalog.plan_check import event_time, output_schema
from catalog.relation import Relation
from catalog.schema import Schema, Type
from tests.differential.make_expression import Expressions
from tests.differential.make_records import Records

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

    def make(self, nodes: int, stateful: bool) -> Plan:
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
                return self._aggregate(self.make(1 if straight else nodes - 1, stateful=False))
            case _:
                first = self.make(max(1, nodes // 2 - 1), stateful=False)
                return self._join(first, self.make(nodes // 2, stateful=False))

    def _source(self) -> Plan:
        # The same relation twice is a case of its own.
        if self.relations and self.random.random() < 0.3:
            return Source(self.random.choice(self.relations))
        self.relations.append(self.records.relation(f"{self.prefix}-{len(self.relations)}"))
        return Source(self.relations[-1])

    def _usable(self, node: Plan) -> Schema:
        """The attributes that expressions may be made of."""
        schema = output_schema(node)
        return Schema(tuple(a for a in schema.attributes if a.name not in self.inexact))

    def _filter(self, node: Plan) -> Plan:
        condition = self.expressions.make(Type.BOOLEAN, self._usable(node), 3)
        if self.random.random() < 0.4:
            # Most random conditions are false or NULL.
            condition = Call(
                "coalesce", (Call("not", (condition,)), Literal(value=True, type=Type.BOOLEAN))
            )
        return Filter(node, condition)

    def project(self, node: Plan) -> Plan:
        """Some attributes under their names, and new ones; names are plain."""
        schema, time = output_schema(node), event_time(node)
        kept = [n for n in schema.names if n == time or self.random.random() < 0.5]
        columns = [Column(name.replace("r.", "r_"), AttributeRef(name)) for name in kept]
        for index in range(self.random.randint(0 if columns else 1, 2)):
            kind = self.random.choice(list(Type))
            made = self.expressions.make(kind, self._usable(node), 3)
            columns.append(Column(f"n{len(schema.names)}_{index}", made))
        unique = {column.name: column for column in columns}
        self.inexact |= {f"r_{n[2:]}" for n in self.inexact if n.startswith("r.")}
        return Project(node, tuple(unique.values()))

    def _union(self, first: Plan, second: Plan) -> Plan:
        usable, time = self._usable(second), event_time(second)
        columns = []
        for attribute in output_schema(first).attributes:
            made: Expression = self.expressions.make(attribute.type, usable, 1)
            if attribute.name == event_time(first) and time is not None:
                made = AttributeRef(time)
            columns.append(Column(attribute.name, made))
        inputs: tuple[Plan, Plan] = (first, Project(second, tuple(columns)))
        return Union(inputs if self.random.random() < 0.5 else inputs[::-1])

    def _aggregate(self, node: Plan) -> Plan:
        if event_time(node) is None:
            return self._filter(node)
        declared = node.relation.declared if isinstance(node, Source) else None
        usable = self._usable(node)
        size = self.random.choice([1000, 10_000, 60_000])
        window = Window(size, self.random.choice([size, size // 2, size // 5]))
        keys = [self.random.choice(usable.names) for _ in range(self.random.randint(0, 2))]
        taken = {name for name in keys if name not in (WINDOW_START, WINDOW_END)}
        plain = declared is not None and self.random.random() < 0.7
        if plain and declared is not None:
            window = Window(declared.window_ms, declared.window_ms)
            taken = set(declared.keys)
        columns = tuple(Column(f"k_{name}", self._key(name, plain)) for name in sorted(taken))
        functions = sorted(DECLARABLE_FUNCTIONS) if plain else list(AGGREGATE_FUNCTIONS)
        results = [self._aggregation(i, functions, usable) for i in range(3)]
        return Aggregate(node, window, columns, tuple(results))

    def _key(self, name: str, plain: bool) -> Expression:
        reference = AttributeRef(name)
        if plain or self.random.random() < 0.8:
            return reference
        return Call("is_null", (reference,))

    def _aggregation(self, index: int, functions: list[str], usable: Schema) -> Aggregation:
        attribute = self.random.choice(usable.attributes)
        fitting = [name for name in functions if AGGREGATE_FUNCTIONS[name](attribute.type)]
        function = self.random.choice(fitting)
        name = f"g{len(self.inexact)}_{index}"
        if function == "count" and self.random.random() < 0.5:
            return Aggregation(name, function, None)
        if AGGREGATE_FUNCTIONS[function](attribute.type) is Type.DOUBLE and function in _INEXACT:
            self.inexact.add(name)
        return Aggregation(name, function, AttributeRef(attribute.name))

    def _join(self, left: Plan, right: Plan) -> Plan:
        mine, other = self._usable(left), self._usable(right)
        pairs = [
            (AttributeRef(a.name), AttributeRef(f"r.{b.name}"))
            for a in mine.attributes
            for b in other.attributes
            if a.type is b.type and event_time(left) != a.name
        ]
        if event_time(left) is None or event_time(right) is None or not pairs:
            return self._union(left, right)
        if is_stateful(left) or is_stateful(right):
            return left
        renamed = Project(
            right, tuple(Column(f"r.{n}", AttributeRef(n)) for n in output_schema(right).names)
        )
        equal = tuple(
            self.random.sample(pairs, 1 if self.random.random() < 0.8 else min(2, len(pairs)))
        )
        lower = self.random.choice([-120_000, -60_000, -1000, 0])
        upper = self.random.choice([0, 500, 30_000, 120_000])
        both = Schema((*mine.attributes, *output_schema(renamed).attributes))
        condition = None
        if self.random.random() < 0.3:
            condition = self.expressions.make(Type.BOOLEAN, both, 2)
        return Join(left, renamed, equal, lower, upper, condition)
