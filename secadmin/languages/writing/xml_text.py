"""`xml_text` writes the plans of a query as a Borealis diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import (
    INSTANT,
    Aggregate,
    Aggregation,
    Column,
    Emission,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    Node,
    Plan,
    Project,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Windowed,
    sources,
)
from catalog.relation import Relation
from catalog.schema import AttributeType, Type
from secadmin.languages.borealis.diagram import parse_borealis
from secadmin.languages.writing.expression_text import expression_text, name_text
from secadmin.languages.writing.sql_text import aggregation_text
from secadmin.languages.writing.step_names import step_name
from secadmin.languages.writing.unsayable import PlannedRelations, Unsayable

_TYPES = {
    Type.BIGINT: "long",
    Type.DOUBLE: "double",
    Type.STRING: "string",
    Type.TIMESTAMP: "timestamp",
    Type.BOOLEAN: "bool",
}
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
Parameters = tuple[tuple[str, str], ...]


def xml_text(outputs: Mapping[str, Plan]) -> str:
    """The diagram of a query with exactly these plans. Raises Unsayable if there is none.

    The text is read again, so it is right or there is an error.
    """
    try:
        text = _Writer(outputs).text()
        again = dict(parse_borealis(text, PlannedRelations(*outputs.values())).outputs)
    except InvalidInput as error:
        reason = error.detail.removeprefix(f"{error.position}: ")
        raise Unsayable(f"these plans cannot be written as a diagram: {reason}") from None
    if {name: checked.plan for name, checked in again.items()} != dict(outputs):
        raise Unsayable("these plans cannot be written as a diagram: no boxes give such names")
    return text


@dataclass(frozen=True, slots=True)
class _Box:
    """A box without a name. Equal parts of plans have equal boxes."""

    kind: str
    inputs: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass
class _Writer:
    """Writes the boxes of some plans. Plans with an equal part share the box of this part."""

    outputs: Mapping[str, Plan]
    # The stream that each box writes, in the order of the boxes.
    streams: dict[_Box, str] = field(default_factory=dict)
    # The outputs that carry the tuples of another stream, and its name.
    copies: dict[str, str] = field(default_factory=dict)
    updates: bool = False

    def __post_init__(self) -> None:
        plans = self.outputs.values()
        self._sources = {r.name: r for plan in plans for r in sources(plan)}
        self._taken = {*self.outputs, *self._sources}
        self._times = {
            id(each.node): each.event_time for plan in plans for each in analyse(plan).root.walk()
        }

    def text(self) -> str:
        for name, plan in self.outputs.items():
            self.updates = plan.emission is Emission.UPDATES
            box = None if isinstance(plan.root, Source) else self._box(plan.root)
            if box is None or box in self.streams:
                self.copies[name] = self._stream(plan.root)
            else:
                self.streams[box] = name
        schemas = "".join(map(_schema, self._sources.values()))
        inputs = "".join(
            f"  <input stream={quoteattr(name)} schema={quoteattr(name)}/>\n"
            for name in self._sources
        )
        outputs = "".join(f"  <output stream={quoteattr(name)}/>\n" for name in self.outputs)
        boxes = "".join(_box_text(box, name) for box, name in self.streams.items())
        boxes += "".join(_box_text(_Box("union", (s,)), name) for name, s in self.copies.items())
        return f"<borealis>\n{inputs}{outputs}{schemas}{boxes}</borealis>\n"

    def _stream(self, node: Node) -> str:
        """The name of the stream that carries the tuples of a node."""
        if isinstance(node, Source):
            if node.shows_level:
                raise Unsayable("Borealis has no levels; ask for SQL")
            return node.relation.name
        box = self._box(node)
        if box not in self.streams:
            self.streams[box] = step_name(len(self.streams), self._taken)
        return self.streams[box]

    def _box(self, node: Node) -> _Box:
        """The box of a node. The boxes of its inputs are written before it."""
        match node:
            case Filter(below, condition):
                words = expression_text(condition)
                return _Box("filter", (self._stream(below),), (("expression.0", words),))
            case Project(Join(kind=JoinKind.INNER) as below, columns):
                return self._join(below, columns)
            case Project(ToStream(Aggregate(Moving() as moving) as groups), columns):
                return self._tuples(moving, groups, [column.name for column in columns])
            case Project(below, columns):
                parameters = _numbered(columns, "expression", "output-field-name")
                return _Box("map", (self._stream(below),), parameters)
            case Union(several):
                return _Box("union", tuple(self._stream(each) for each in several))
            case Aggregate(Windowed() as windows):
                inputs = (self._stream(windows.input),)
                return _Box("aggregate", inputs, self._windows(node, windows))
            case Unnest():
                raise Unsayable("Borealis makes one tuple of one; ask for SQL")
            case ToStream():
                raise Unsayable("Borealis has no moving windows of CQL; ask for SQL")
            case Match():
                raise Unsayable("Borealis has no event patterns; ask for SQL")
            case _:
                raise Unsayable("a join box gives its out-fields, and nothing comes between them")

    def _windows(self, node: Aggregate, windows: Windowed) -> Parameters:
        if any(key.expression != AttributeRef(key.name) for key in node.keys):
            raise Unsayable("group-by names attributes; compute a key in a map before it")
        if isinstance(windows.window, SessionWindow):
            raise Unsayable("Borealis has no session windows; ask for SQL")
        if node.enough is not None:
            raise Unsayable("only a policy asks for a minimum of senders in each group")
        return (
            ("window-size-by", "VALUES"),
            ("window-size", _size(windows.window.size_ms)),
            ("advance", _size(windows.window.slide_ms)),
            ("order-by", self._times[id(windows.input)] or ""),
            *_functions(node, node.aggregations),
            *((("emit", "UPDATES"),) if self.updates else ()),
        )

    def _tuples(self, moving: Moving, node: Aggregate, shown: Sequence[str]) -> _Box:
        """The box of windows of tuples. It is right only if its text is read as this node."""
        rows = moving.window.rows
        slides = moving.window.slide_rows is not None or rows == 1
        if rows is None or not slides or moving.window.of_all:
            raise Unsayable("Borealis has no such windows of CQL; ask for SQL")
        time = self._times[id(moving.input)] or ""
        named = {key.name for key in node.keys}
        field = [name for name in shown if name not in {*named, *_names(node), INSTANT}]
        order: Parameters = (("order-by", "TUPLENUM"),)
        if INSTANT in shown:
            order = (("order-by", time),)
        elif field:
            order = (("order-by", "FIELD"), ("order-on-field", field[0]))
        parameters = (
            ("window-size-by", "TUPLES"),
            ("window-size", str(rows)),
            ("advance", str(moving.window.slide_rows or 1)),
            *order,
            *_functions(node, [each for each in node.aggregations if each.name in shown]),
        )
        return _Box("aggregate", (self._stream(moving.input),), parameters)

    def _join(self, node: Join, columns: tuple[Column, ...]) -> _Box:
        sides = [side for side in (node.left, node.right) if isinstance(side, Project)]
        if [side.columns[0].name.partition(".")[0] for side in sides] != ["left", "right"]:
            raise Unsayable("the sides of a join box are called left and right, and here otherwise")
        conditions = [f"{name_text(a.name)} = {name_text(b.name)}" for a, b in node.equal]
        if node.condition is not None:
            conditions.append(f"({expression_text(node.condition)})")
        parameters = (
            ("predicate", " AND ".join(conditions)),
            ("left-buffer-size", _size(node.upper_ms)),
            ("right-buffer-size", _size(-node.lower_ms)),
            *_numbered(columns, "out-field", "out-field-name"),
        )
        return _Box("join", tuple(self._stream(side.input) for side in sides), parameters)


def _names(node: Aggregate) -> list[str]:
    return [*(key.name for key in node.keys), *(each.name for each in node.aggregations)]


def _functions(node: Aggregate, aggregations: Sequence[Aggregation]) -> Parameters:
    """The parameters of the groups and functions of an aggregate box."""
    keys = ", ".join(key.name for key in node.keys)
    functions = [
        parameter
        for number, each in enumerate(aggregations)
        for parameter in (
            (f"aggregate-function.{number}", aggregation_text(each)),
            (f"aggregate-function-output-name.{number}", each.name),
        )
    ]
    return (*((("group-by", keys),) if keys else ()), *functions)


def _box_text(box: _Box, output: str) -> str:
    lines = [
        *(f"<in stream={quoteattr(stream)}/>" for stream in box.inputs),
        f"<out stream={quoteattr(output)}/>",
        *(f"<parameter name={quoteattr(n)} value={quoteattr(v)}/>" for n, v in box.parameters),
    ]
    inner = "".join(f"    {line}\n" for line in lines)
    return f'  <box name={quoteattr(output)} type="{box.kind}">\n{inner}  </box>\n'


def _size(length_ms: int) -> str:
    unit, factor = next((unit, f) for unit, f in _UNITS if length_ms % f == 0 or f == 1)
    return f"{length_ms // factor}{unit}"


def _numbered(columns: tuple[Column, ...], value: str, name: str) -> Parameters:
    return tuple(
        parameter
        for number, column in enumerate(columns)
        for parameter in (
            (f"{value}.{number}", expression_text(column.expression)),
            (f"{name}.{number}", column.name),
        )
    )


def _schema(relation: Relation) -> str:
    fields = "".join(
        f'    <field name="{a.name}" type="{_type(a.type)}"/>\n' for a in relation.schema.attributes
    )
    return f"  <schema name={quoteattr(relation.name)}>\n{fields}  </schema>\n"


def _type(type_: AttributeType) -> str:
    if not isinstance(type_, Type):
        raise Unsayable(f"a diagram has no type {type_}")
    return _TYPES[type_]
