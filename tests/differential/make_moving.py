"""Random moving windows: relations over one stream or two, and the streams of their changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from catalog.aggregates import ALL_AGGREGATE_FUNCTIONS
from catalog.analysis import analyse_node
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression
from catalog.plan import (
    INSTANT,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Neighbour,
    Node,
    OrderKey,
    Project,
    Ranked,
    ToStream,
    Union,
    walk,
)
from catalog.schema import Schema, Type
from catalog.upserts import keys_of

# Makes a random expression of a type over attributes.
MakeExpression = Callable[[Type, Schema], Expression]
# A deviation is right to some digits, and rows are compared to all of them.
_FUNCTIONS = sorted(ALL_AGGREGATE_FUNCTIONS.keys() - {"stddev"})
_TRIES = 8


def goes_under_a_window(node: Node) -> bool:
    """Whether a moving window may go over the node's tuples."""
    checked = analyse_node(node)
    return (
        checked.event_time is not None
        and not checked.keeps_state
        and INSTANT not in checked.schema.names
    )


def moving(random: Random, node: Node) -> Moving:
    """A random moving window over a node."""
    names = analyse_node(node).schema.names
    parts = tuple(AttributeRef(n) for n in random.sample(names, min(random.randint(0, 2), 1)))
    range_ms = random.choice([0, 1, 1000, 20_000])
    window = random.choice(
        [
            MovingWindow(range_ms=range_ms),
            MovingWindow(range_ms=range_ms or 5, slide_ms=random.choice([500, 7000, 30_000])),
            MovingWindow(rows=random.randint(1, 4), partition=parts),
            _of_tuples(random.randint(1, 4), parts),
            MovingWindow(),
        ]
    )
    if random.random() < 0.3:
        window = _of_all(random, Moving(node, window))
    return Moving(node, window)


def _of_all(random: Random, moving: Moving) -> MovingWindow:
    """A window with one size for all tuples, if the node can be below it, or the given window."""
    rows = random.randint(1, 4)
    slide = random.choice([None, random.randint(1, rows)]) if rows > 1 else None
    window = MovingWindow(rows=rows, slide_rows=slide, of_all=True)
    try:
        analyse_node(ToStream(replace(moving, window=window), Change.ISTREAM))
    except InvalidInput:
        return moving.window
    return window


def _of_tuples(number: int, parts: tuple[AttributeRef, ...]) -> MovingWindow:
    """A window of two to four tuples, which moves by one or two."""
    return MovingWindow(rows=max(number, 2), partition=parts, slide_rows=min(number, 2))


def united(random: Random, window: Moving) -> Node:
    """A union of a window with another one over the same tuples."""
    return Union((window, moving(random, window.input)))


def joined(random: Random, windows: Sequence[Node], make: MakeExpression) -> Node | None:
    """A random join of two or more relations, or None if they have nothing to compare."""
    found: Node | None = None
    for alias, window in zip("lrc", windows, strict=False):
        names = analyse_node(window).schema.names
        columns = (Column(f"{alias}.{name}", AttributeRef(name)) for name in names)
        side = Project(window, tuple(columns))
        found = side if found is None else _joined(random, found, side, make)
        if found is None:
            return None
    return found


def _joined(random: Random, left: Node, right: Node, make: MakeExpression) -> Node | None:
    mine, other = (analyse_node(side).schema for side in (left, right))
    pairs = [
        (AttributeRef(a.name), AttributeRef(b.name))
        for a in mine.attributes
        for b in other.attributes
        if a.type is b.type
    ]
    if not pairs:
        return None
    equal = tuple(random.sample(pairs, 1 if random.random() < 0.8 else min(2, len(pairs))))
    kind = JoinKind.INNER if random.random() < 0.4 else random.choice(list(JoinKind))
    plain = MovingJoin(left, right, equal, None, kind, random.random() < 0.3)
    both = Schema((*mine.attributes, *other.attributes))

    def with_condition() -> Node:
        return replace(plain, condition=make(Type.BOOLEAN, both))

    return _first_right(with_condition, plain) if random.random() < 0.5 else plain


def stream(random: Random, relation: Node, make: MakeExpression) -> Node:
    """The stream of a relation's changes, after random steps."""
    change = random.choice([Change.ISTREAM, Change.DSTREAM, Change.RSTREAM])
    if random.random() < 0.4:
        schema = analyse_node(relation).schema

        def filtered() -> Node:
            known = Call("not", (Call("is_null", (make(random.choice(list(Type)), schema),)),))
            return Filter(relation, known)

        relation = _first_right(filtered, relation)
    shape = random.choice([_rows, _rows, _distinct, _groups, _groups, _ranked])
    made = shape(random, relation, make)
    while random.random() < 0.3:
        made = _over(random, made, make)
    return ToStream(made, change)


def _over(random: Random, relation: Node, make: MakeExpression) -> Node:
    """A relation over another one, if its order is the same everywhere."""
    names = [n for n in analyse_node(relation).schema.names if not n.startswith("g")]
    by_neighbours = (isinstance(n, Ranked) and not n.by_place for n in walk(relation))
    if not names or any(by_neighbours):
        return relation
    # Nothing is computed from aggregates of doubles.
    exact = Project(relation, tuple(Column(name, AttributeRef(name)) for name in names))
    return random.choice([_rows, _distinct, _groups, _groups, _ranked])(random, exact, make)


def with_upserts(random: Random, root: Node) -> Node:
    """The plan, perhaps with upserts where its root is the changes of groups with keys."""
    if isinstance(root, ToStream) and _has_keys(root.input) and random.random() < 0.7:
        return replace(root, change=Change.UPSERT)
    return root


def _has_keys(relation: Node) -> bool:
    """Whether a relation is groups that can be upserts."""
    try:
        keys_of(relation)
    except InvalidInput:
        return False
    return True


def _rows(random: Random, relation: Node, make: MakeExpression) -> Node:
    schema = analyse_node(relation).schema
    names = random.sample(schema.names, random.randint(1, len(schema.names)))
    plain = [Column(name.replace(".", "_"), AttributeRef(name)) for name in names]

    def computed() -> Node:
        made = [Column(f"c{i}", make(random.choice(list(Type)), schema)) for i in range(2)]
        return Project(relation, tuple(random.sample([*plain, *made], 2)))

    return _first_right(computed, Project(relation, tuple(plain)))


def _distinct(random: Random, relation: Node, make: MakeExpression) -> Node:
    rows = _rows(random, relation, make)
    keys = (Column(name, AttributeRef(name)) for name in analyse_node(rows).schema.names)
    return Aggregate(rows, tuple(keys), ())


def _ranked(random: Random, relation: Node, make: MakeExpression) -> Node:
    """The rows of a relation in an order."""
    schema = analyse_node(relation).schema
    names = schema.names

    def refs(most: int) -> list[AttributeRef]:
        return [AttributeRef(random.choice(names)) for _ in range(random.randint(0, most))]

    def ranked() -> Node:
        limit = random.choice([None, 1, 2, 5])
        others = enumerate(refs(1 if limit else 2))
        neighbours = (Neighbour(f"n{at}", ref, random.choice([1, 2, -1])) for at, ref in others)
        order = [OrderKey(ref, random.random() < 0.5) for ref in refs(2)]
        order.append(OrderKey(AttributeRef(random.choice(names))))
        number = "rn" if limit and random.random() < 0.6 else None
        ranked = Ranked(relation, (*refs(1),), (*order,), limit, number, (*neighbours,))
        columns = (
            Column(name.replace(".", "_"), AttributeRef(name))
            for name in analyse_node(ranked).schema.names
        )
        return Project(ranked, tuple(columns))

    return _first_right(ranked, _rows(random, relation, make))


def _groups(random: Random, relation: Node, make: MakeExpression) -> Node:
    schema = analyse_node(relation).schema

    def grouped() -> Node:
        keys = [
            Column(f"k{i}", make(random.choice(list(Type)), schema))
            for i in range(random.randint(0, 1))
        ]
        keys += [Column("k", AttributeRef(random.choice(schema.names)))] * random.randint(0, 1)
        results = [Aggregation("n", "count", None)]
        for index in range(2):
            argument = make(random.choice(list(Type)), schema)
            function = random.choice(_FUNCTIONS)
            results.append(Aggregation(f"g{index}", function, argument))
        return Aggregate(relation, tuple(keys), tuple(results[random.randint(0, 1) :]))

    count = Aggregate(relation, (), (Aggregation("n", "count", None),))
    return _first_right(grouped, count)


def _first_right(make: Callable[[], Node], otherwise: Node) -> Node:
    """A random relation that is right. Random expressions may combine both sides too freely."""
    for _ in range(_TRIES):
        try:
            made = make()
            analyse_node(ToStream(made, Change.ISTREAM))
        except InvalidInput:
            continue
        return made
    return otherwise
