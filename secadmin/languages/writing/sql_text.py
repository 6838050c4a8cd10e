"""`sql_text` writes a plan as a SQL query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from catalog.aggregates import aggregate_words
from catalog.analysis import analyse
from catalog.conflict_class import LEVEL
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression, attributes_of, conjuncts
from catalog.moments import closing, same
from catalog.moving_check import is_of_windows
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Emission,
    Filter,
    Join,
    Match,
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Window,
    Windowed,
    sources,
    walk,
)
from secadmin.languages.sql.parse import MAX_BYTES, parse_sql
from secadmin.languages.writing.expression_text import Names, expression_text, name_text
from secadmin.languages.writing.intervals import interval_text
from secadmin.languages.writing.match_text import match_text
from secadmin.languages.writing.moving_text import (
    OUTER,
    MovingText,
    Side,
    exists_text,
    join_words,
    outside,
)
from secadmin.languages.writing.step_names import step_name
from secadmin.languages.writing.unsayable import PlannedRelations, Unsayable


def sql_text(plan: Plan) -> str:
    """The SQL of a query with exactly this plan. Raises Unsayable if there is none.

    The text is read again, so it is right or there is an error.
    """
    resolver = PlannedRelations(plan)
    reason = "SQL gives such names or such an order of steps to no query"
    # A step over groups may be a part of their SELECT, or a SELECT of its own.
    for merged in (True, False):
        try:
            text = _Writer(plan, merged).text()
        except Unsayable as error:
            reason = error.detail
            continue
        if len(text) > MAX_BYTES:
            raise Unsayable(f"this plan cannot be written in SQL in {MAX_BYTES // 1024} KiB")
        try:
            if parse_sql(text, resolver).plan == plan:
                return text
        except InvalidInput as error:
            reason = error.detail.removeprefix(f"{error.position}: ")
    raise Unsayable(f"this plan cannot be written in SQL: {reason}")


@dataclass
class _Writer:
    """Writes one plan. Each step that is not the last becomes a query of WITH."""

    plan: Plan
    merged: bool
    # The name of each step by its query, in the order of the steps. Equal steps are one.
    steps: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._taken = {relation.name for relation in sources(self.plan)}
        ordered = any(isinstance(each, Ranked) for each in walk(self.plan.root))
        self._relations = MovingText(self._item, _columns, ordered)
        self._checked = {id(each.node): each for each in analyse(self.plan).root.walk()}
        self._times = {key: each.event_time for key, each in self._checked.items()}

    def text(self) -> str:
        last = self._query(self.plan.root)
        steps = [f"{name} AS (\n{query}\n)" for query, name in self.steps.items()]
        first = "WITH " + ",\n".join(steps) + "\n" if steps else ""
        end = "\nEMIT UPDATES" if self.plan.emission is Emission.UPDATES else ""
        return f"{first}{last}{end}"

    def _item(self, node: Node) -> str:
        """The name by which FROM reads a node."""
        if isinstance(node, Source):
            return name_text(node.relation.name)
        query = self._query(node)
        if query not in self.steps:
            self.steps[query] = step_name(len(self.steps), self._taken)
        return self.steps[query]

    def _query(self, node: Node) -> str:
        if self._checked[id(node)].is_changing:
            return self._relation(node)
        match node:
            case Project(ToStream(relation)) if is_of_windows(self._checked[id(relation)]):
                return self._relation(relation)
            case Project(below, columns):
                return self._select(below, _columns(columns), node)
            case ToStream():
                return self._moving(node)
            case Match():
                return self._matches(node)
            case Filter(ToStream(Project(Aggregate()) | Aggregate()) as stream, condition):
                return self._moving(stream, condition)
            case Union(several):
                return "\nUNION ALL\n".join(map(self._branch, several))
            case _:
                return self._select(node, "*", node)

    def _branch(self, node: Node) -> str:
        """A branch of UNION ALL. A union in it is a step, because a chain would be one union."""
        return self._select(node, "*", node) if isinstance(node, Union) else self._query(node)

    def _select(self, below: Node, columns: str, whole: Node) -> str:
        """The SELECT of these columns over a node. A Filter over it becomes its WHERE."""
        condition = None
        under = below
        if isinstance(under, Filter):
            condition, under = under.condition, under.input
        if isinstance(under, Aggregate) and (self.merged or under is whole):
            return self._grouped(under, condition, whole)
        if columns == "*" and isinstance(under, Source) and under.shows_level:
            # The star leaves it out.
            columns = f"*, {LEVEL}"
        if isinstance(under, Unnest):
            source = self._unnest(under)
        elif isinstance(under, Join) and not under.kind.shows_right and not _has_alias(under):
            # WHERE asks for the tuples of the right side, and nothing else.
            source = self._asked(under) if condition is None else self._item(under)
        else:
            source = self._join(under) if isinstance(under, Join) else self._item(under)
        where = "" if condition is None else f"\nWHERE {expression_text(condition)}"
        return f"SELECT {columns}\nFROM {source}{where}"

    def _grouped(self, node: Aggregate, having: Expression | None, whole: Node) -> str:
        if not isinstance(node.input, Windowed):
            raise Unsayable("a group has a window")
        if node.enough is not None:
            raise Unsayable("only a policy asks for a minimum of senders in each group")
        below = node.input.input
        columns = whole.columns if isinstance(whole, Project) else _all_columns(node)
        kind, parts = _window(node.input.window)
        time = name_text(self._times[id(below)] or "")
        keys = [expression_text(key.expression) for key in node.keys]
        names = _names_of_groups(node, kind)
        window = f"{kind}({', '.join([time, *map(interval_text, parts)])})"
        used = {ref.name for column in columns for ref in attributes_of(column.expression)}
        windows = closing(self._checked[id(below)])
        if windows is not None and node.input.window == same(windows) and WINDOW_START not in used:
            # Each group has the results of one window, so its end says which.
            window, names = time, _names_of_groups(node, kind, end=time)
        text = f"SELECT {_columns(columns, names)}\nFROM {self._source(below)}"
        text += f"\nGROUP BY {', '.join([window, *keys])}"
        return text if having is None else f"{text}\nHAVING {expression_text(having, names)}"

    def _source(self, node: Node) -> str:
        """What FROM and WHERE have of a node under groups. A join is written out in them."""
        condition, under = None, node
        if isinstance(under, Filter):
            condition, under = under.condition, under.input
        if isinstance(under, Unnest):
            source = self._unnest(under)
        elif isinstance(under, Join) and _has_alias(under):
            source = self._join(under)
        else:
            return self._item(node)
        where = "" if condition is None else f"\nWHERE {expression_text(condition)}"
        return f"{source}{where}"

    def _moving(self, node: ToStream, having: Expression | None = None) -> str:
        """The changes of a relation. A Filter over its stream is its HAVING."""
        return self._changes(node, self._relation(node.input, having))

    def _relation(self, below: Node, having: Expression | None = None) -> str:
        """A SELECT over moving windows, or over groups of them."""
        columns: Iterable[Column] | None = None
        select = "SELECT"
        united = self._relations.set_operator(below) if isinstance(below, Aggregate) else None
        if united is not None:
            return united
        if isinstance(below, Aggregate) and not below.aggregations:
            select, below = "SELECT DISTINCT", below.input
        if isinstance(below, Project):
            columns = below.columns
            below = below.input
        names: Names | None = None
        groups = ""
        if isinstance(below, Aggregate) and (self.merged or columns is None or having is not None):
            columns = _all_columns(below) if columns is None else columns
            names = _names_of_groups(below, "")
            keys = ", ".join(expression_text(key.expression) for key in below.keys)
            groups = f"\nGROUP BY {keys}" if keys else ""
            below = below.input
        ranked = self._relations.ranked(below, columns)
        if ranked is not None:
            return ranked
        if isinstance(below, Moving) and _is_endless(below):
            source = self._source(below.input)
        else:
            source = self._relations.source(below)
        if having is not None:
            groups += f"\nHAVING {expression_text(having, _over(columns, names))}"
        results = "*" if columns is None else _columns(columns, names)
        return f"{select} {results}\nFROM {source}{groups}"

    def _changes(self, node: ToStream, text: str) -> str:
        """What is sent of the changes of a relation with this text."""
        whole = self.plan.root
        if node is whole and any(map(_is_endless, walk(node))):
            # Groups without a window are upserts.
            return text
        # A condition on the stream of groups is their HAVING. One on other rows is around them.
        grouped = any(isinstance(each, Aggregate) for each in walk(node))
        if node is whole or (grouped and isinstance(whole, Filter) and node is whole.input):
            return f"{node.change.upper()}({text})"
        if node.change is not Change.ISTREAM:
            raise Unsayable("DSTREAM, RSTREAM and UPSERT go around a whole query")
        return text

    def _matches(self, node: Match) -> str:
        time = self._times[id(node.input)] or ""
        return f"SELECT *\nFROM {self._item(node.input)} {match_text(node, time)}"

    def _asked(self, node: Join) -> str:
        side = Side.of(node.right)
        mine = outside(self._times[id(node.left)] or "")
        other = name_text(f"{side.alias}.{self._times[id(side.below)]}")
        lower, upper = (_moved(mine, ms) for ms in (node.lower_ms, node.upper_ms))
        asked = exists_text(node, self._item, outside, [f"{other} BETWEEN {lower} AND {upper}"])
        return f"{self._item(node.left)} AS {OUTER}\nWHERE {asked}"

    def _join(self, node: Join) -> str:
        mine, other = (name_text(self._times[id(s)] or "") for s in (node.left, node.right))
        lower, upper = (_moved(mine, ms) for ms in (node.lower_ms, node.upper_ms))
        conditions = [
            *(f"{name_text(a.name)} = {name_text(b.name)}" for a, b in node.equal),
            f"{other} BETWEEN {lower} AND {upper}",
        ]
        if node.condition is not None:
            conditions += [f"({expression_text(part)})" for part in conjuncts(node.condition)]
        return (
            f"{self._side(node.left)}\n{join_words(node.kind)}JOIN {self._side(node.right)}"
            "\n  ON " + "\n AND ".join(conditions)
        )

    def _unnest(self, node: Unnest) -> str:
        names = [node.name] if node.number is None else [node.name, node.number]
        aliases = {each.partition(".")[0] for each in names}
        if len(aliases) != 1:
            raise Unsayable("the elements and their places are attributes of one relation")
        below = node.input
        over = self._join(below) if isinstance(below, Join) else self._item(below)
        own = ", ".join(name_text(each.partition(".")[2]) for each in names)
        ordinality = "" if node.number is None else " WITH ORDINALITY"
        array = f"UNNEST({expression_text(node.array)}){ordinality}"
        named = f"{array} AS {name_text(aliases.pop())} ({own})"
        if node.keeps:
            return f"{over}\nLEFT JOIN {named} ON TRUE"
        return f"{over}\nCROSS JOIN {named}"

    def _side(self, node: Node) -> str:
        """A side of a join: a join before it, or what has an alias."""
        if isinstance(node, Join) and _has_alias(node):
            return self._join(node)
        alias, below = _side(node)
        return f"{self._item(below)} AS {name_text(alias)}"


def _is_endless(node: Node) -> bool:
    """Whether a node makes a relation of all elements so far, which GROUP BY alone does."""
    if not isinstance(node, Moving) or node.window != MovingWindow():
        return False
    below = node.input.input if isinstance(node.input, Filter) else node.input
    return isinstance(below, Unnest)


def _window(window: Window | SessionWindow) -> tuple[str, list[int]]:
    """The function of a window and its lengths."""
    if isinstance(window, SessionWindow):
        return "SESSION", [window.gap_ms]
    offset = [window.offset_ms] if window.offset_ms else []
    if window.slide_ms != window.size_ms:
        return "HOP", [window.slide_ms, window.size_ms, *offset]
    return "TUMBLE", [window.size_ms, *offset]


def _has_alias(node: Node) -> bool:
    """Whether the names of a side begin with its alias, or with those of its own sides."""
    while isinstance(node, Join):
        node = node.left
    return isinstance(node, Project) and "." in node.columns[0].name


def _side(node: Node) -> tuple[str, Node]:
    """The alias of a side of a join, and the node that has this alias."""
    if not isinstance(node, Project):
        raise Unsayable("a side of a join has an alias")
    return node.columns[0].name.partition(".")[0], node.input


def _moved(time: str, by_ms: int) -> str:
    sign = "-" if by_ms < 0 else "+"
    return f"{time} {sign} {interval_text(abs(by_ms))}"


def _over(columns: Iterable[Column] | None, names: Names | None) -> Names:
    """What the results of a SELECT over groups are over their input."""
    if columns is None or names is None:
        raise Unsayable("HAVING goes over groups")
    inner = {
        column.name: column.expression.name
        for column in columns
        if isinstance(column.expression, AttributeRef)
    }
    known = {name: names(own) for name, own in inner.items()}
    if "instant" in known:
        raise Unsayable("HAVING names no instant")
    return lambda name: known.get(name, name)


def _all_columns(node: Aggregate) -> Iterable[Column]:
    edges = (WINDOW_START, WINDOW_END) if isinstance(node.input, Windowed) else ()
    names = [*edges, *(key.name for key in node.keys), *(a.name for a in node.aggregations)]
    return [Column(name, AttributeRef(name)) for name in names]


def _key_text(key: Expression) -> str:
    text = expression_text(key)
    return text if isinstance(key, AttributeRef) else f"({text})"


def _names_of_groups(node: Aggregate, kind: str, end: str = "") -> Names:
    """What the attributes of an Aggregate are over its input.

    `end` is the attribute of the input that ends the group's window, if there is one.
    """
    known = {
        WINDOW_START: f"{kind}_START()",
        WINDOW_END: end or f"{kind}_END()",
        **{key.name: _key_text(key.expression) for key in node.keys},
        **{each.name: aggregation_text(each) for each in node.aggregations},
    }
    return known.__getitem__


def aggregation_text(aggregation: Aggregation) -> str:
    """The call of an aggregate function, as both languages write it."""
    argument = "*" if aggregation.argument is None else expression_text(aggregation.argument)
    return aggregate_words(aggregation.function, argument)


def _columns(columns: Iterable[Column], names: Names | None = None) -> str:
    return ", ".join(_column(column, names) for column in columns)


def _column(column: Column, names: Names | None) -> str:
    expression = column.expression
    text, name = expression_text(expression, names), name_text(column.name)
    own = expression.name.rpartition(".")[2] if isinstance(expression, AttributeRef) else ""
    # A result that is an attribute has the name of the attribute, without its qualifier.
    is_own = text == name if names else own == column.name
    return text if is_own else f"{text} AS {name}"
