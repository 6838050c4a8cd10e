"""FROM, WHERE and set operators over moving windows, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catalog.expression import AttributeRef, Expression, conjuncts
from catalog.plan import (
    Aggregate,
    Column,
    Filter,
    Join,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Ranked,
    Source,
    Union,
    Windowed,
    walk,
)
from secadmin.languages.writing.expression_text import Names, expression_text, name_text
from secadmin.languages.writing.intervals import interval_text
from secadmin.languages.writing.unsayable import Unsayable

# Gives the name by which FROM reads a stream.
Item = Callable[[Node], str]
# Gives the results of SELECT.
Results = Callable[[Iterable[Column]], str]
OUTER = "outer_row"


@dataclass(frozen=True, slots=True)
class MovingText:
    """Writes relations of moving windows. What it cannot write is Unsayable."""

    item: Item
    results: Results
    # Whether the plan has an order. Over results of windows, OVER says when they are there.
    ordered: bool = False

    def source(self, node: Node) -> str:
        """What is behind FROM, with its WHERE."""
        asked: list[tuple[MovingJoin, Node]] = []
        while isinstance(node, MovingJoin) and _is_asked(node):
            asked.append((node, node.right))
            node = node.left
        conditions: list[str] = []
        if isinstance(node, Filter):
            conditions = [f"({expression_text(part)})" for part in conjuncts(node.condition)]
            node = node.input
        if isinstance(node, MovingJoin):
            text, more = self._joins(node)
            conditions += more
            names: Names = name_text
        else:
            alias = f" AS {OUTER}" if asked else ""
            text = f"{self._window(node)}{alias}"
            names = outside
        conditions += [exists_text(join, self._window, names) for join, _ in reversed(asked)]
        where = "\n  AND ".join(conditions)
        return f"{text}\nWHERE {where}" if conditions else text

    def ranked(self, node: Node, columns: Iterable[Column] | None) -> str | None:
        """A SELECT over rows in an order, or None for another relation."""
        if not isinstance(node, Ranked):
            return None
        keys = ", ".join(
            f"{name_text(key.attribute.name)}{' DESC' if key.descending else ''}"
            for key in node.order
        )
        if node.number is None and not node.neighbours:
            if node.partition or node.limit is None:
                raise Unsayable("LIMIT goes over all rows")
            shown = "*" if columns is None else self.results(columns)
            where = self.source(node.input)
            return f"SELECT {shown}\nFROM {where}\nORDER BY {keys} LIMIT {node.limit}"
        each = ", ".join(name_text(key.name) for key in node.partition)
        parts = f"PARTITION BY {each} " if each else ""
        over = f"OVER ({parts}ORDER BY {keys})"
        calls = {node.number or "": f"ROW_NUMBER() {over}"}
        for other in node.neighbours:
            name = "LAG" if other.offset > 0 else "LEAD"
            value = name_text(other.attribute.name)
            calls[other.name] = f"{name}({value}, {abs(other.offset)}) {over}"
        if columns is None:
            made = [f"{calls[name]} AS {name_text(name)}" for name in calls if name]
            shown = ", ".join(["*", *made])
        else:
            shown = ", ".join(self._ranked_result(column, calls) for column in columns)
        return f"SELECT {shown}\nFROM {self.source(node.input)}"

    def _ranked_result(self, column: Column, calls: Mapping[str, str]) -> str:
        value = column.expression
        if isinstance(value, AttributeRef) and value.name in calls:
            return f"{calls[value.name]} AS {name_text(column.name)}"
        return self.results([column])

    def _window(self, node: Node) -> str:
        if not isinstance(node, Moving):
            # Groups, and rows in an order, are a query of their own.
            return self.item(node)
        if isinstance(node.input, Source) and node.input.relation.keys:
            # Upserts have one window, which need not be written.
            return self.item(node.input)
        if self.ordered and any(isinstance(each, Windowed) for each in walk(node.input)):
            return self.item(node.input)
        return f"{self.item(node.input)} {moving_window_text(node.window)}"

    def _joins(self, node: MovingJoin) -> tuple[str, list[str]]:
        """The joins behind FROM, and the conditions of WHERE that belong to them."""
        joins = [node]
        while isinstance(joins[0].left, MovingJoin):
            joins.insert(0, joins[0].left)
        first = Side.of(joins[0].left)
        own = [Side.of(join.right) for join in joins]
        inner = all(join.kind is JoinKind.INNER for join in joins)
        texts = [f"{self._window(side.below)} AS {name_text(side.alias)}" for side in (first, *own)]
        conditions = [
            _on(join, (first, side) if join is joins[0] else (side,))
            for join, side in zip(joins, own, strict=True)
        ]
        if any(join.nulls_equal for join in joins):
            raise Unsayable("EXCEPT and INTERSECT alone compare NULL with NULL")
        if inner:
            return ", ".join(texts), [part for several in conditions for part in several]
        text = texts[0]
        for join, side, parts in zip(joins, texts[1:], conditions, strict=True):
            text += f"\n{join_words(join.kind)}JOIN {side}\n  ON " + "\n AND ".join(parts)
        return text, []

    def set_operator(self, node: Aggregate) -> str | None:
        """The text of UNION, EXCEPT or INTERSECT, or None for another relation."""
        return None if node.aggregations else self._set(node.input)

    def _set(self, node: Node) -> str | None:
        match node:
            case Union(several):
                return "\nUNION\n".join(map(self._select, several))
            case MovingJoin(left, Project(right), kind=JoinKind.ANTI, nulls_equal=True):
                return self._two(left, "EXCEPT", right)
            case Project(MovingJoin(left, Project(right), kind=JoinKind.INNER, nulls_equal=True)):
                return self._two(left, "INTERSECT", right)
            case _:
                return None

    def _two(self, left: Node, word: str, right: Node) -> str:
        # The names of the left side are those of both.
        if isinstance(right, Project) and isinstance(right.input, Project):
            right = right.input
        sides = []
        for side in (left, right):
            found = self._set(side)
            sides.append(self._select(side) if found is None else f"({found})")
        return f"\n{word}\n".join(sides)

    def _select(self, node: Node) -> str:
        if isinstance(node, Project):
            if isinstance(node.input, Project):
                node = node.input
            return f"SELECT {self.results(node.columns)}\nFROM {self.source(node.input)}"
        return f"SELECT *\nFROM {self.source(node)}"


def exists_text(
    join: Join | MovingJoin, item: Item, names: Names, bounds: Iterable[str] = ()
) -> str:
    """The EXISTS or NOT EXISTS of a semi or anti join.

    `names` gives the names of the left attributes, `item` what FROM reads, and `bounds` are further
    conditions.
    """
    side = Side.of(join.right)
    prefix = f"{side.alias}."

    def name(attribute: str) -> str:
        return name_text(attribute) if attribute.startswith(prefix) else names(attribute)

    equal = [f"{name(mine.name)} = {name(other.name)}" for mine, other in join.equal]
    rest = () if join.condition is None else conjuncts(join.condition)
    several = [f"({expression_text(part, name)})" for part in (*side.conditions, *rest)]
    denied = "NOT " if join.kind is JoinKind.ANTI else ""
    where = " AND ".join([*several, *equal, *bounds])
    query = f"1 FROM {item(side.below)} AS {name_text(side.alias)} WHERE {where}"
    return f"{denied}EXISTS (SELECT {query})"


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a join: its alias, the node that has it, and its own conditions."""

    alias: str
    below: Node
    conditions: tuple[Expression, ...]

    @classmethod
    def of(cls, node: Node) -> Side:
        """The side with this node. Raises Unsayable if it has no alias."""
        conditions: tuple[Expression, ...] = ()
        if isinstance(node, Filter):
            conditions, node = conjuncts(node.condition), node.input
        if not isinstance(node, Project):
            raise Unsayable("a side of a join has an alias")
        return cls(node.columns[0].name.partition(".")[0], node.input, conditions)


def _is_asked(node: MovingJoin) -> bool:
    """Whether a join is a condition of WHERE: EXISTS, or IN."""
    right = node.right.input if isinstance(node.right, Filter) else node.right
    named = isinstance(right, Project) and right.columns[0].name.startswith("in")
    return named and not node.kind.shows_right and not node.nulls_equal


def outside(attribute: str) -> str:
    """The name of an attribute of the query around EXISTS."""
    return name_text(f"{OUTER}.{attribute}")


def _on(join: MovingJoin, sides: tuple[Side, ...]) -> list[str]:
    rest = () if join.condition is None else conjuncts(join.condition)
    parts = [part for side in sides for part in side.conditions]
    equal = [f"{name_text(a.name)} = {name_text(b.name)}" for a, b in join.equal]
    return [*(f"({expression_text(part)})" for part in (*parts, *rest)), *equal]


def join_words(kind: JoinKind) -> str:
    words = {JoinKind.INNER: "", JoinKind.SEMI: "LEFT SEMI ", JoinKind.ANTI: "LEFT ANTI "}
    return words.get(kind, f"{kind.upper()} ")


def moving_window_text(window: MovingWindow) -> str:
    """A moving window in brackets."""
    if window.rows is None and window.range_ms is None:
        return "[UNBOUNDED]"
    if window.rows is None:
        slide = f" SLIDE {_length(window.slide_ms)}" if window.slide_ms else ""
        return f"[RANGE {_length(window.range_ms)}{slide}]" if window.range_ms else "[NOW]"
    keys = ", ".join(name_text(key.name) for key in window.partition)
    rows = f"ROWS {window.rows}" + (f" SLIDE {window.slide_rows}" if window.slide_rows else "")
    rows += " OF ALL" if window.of_all else ""
    return f"[PARTITION BY {keys} {rows}]" if keys else f"[{rows}]"


def _length(length_ms: int) -> str:
    return interval_text(length_ms).removeprefix("INTERVAL ").replace("'", "")
