"""`xml_text` writes the plans of a query as a Borealis diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from catalog.analysis import analyse
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import (
    Aggregate,
    Column,
    Emission,
    Filter,
    Join,
    Node,
    Plan,
    Project,
    Source,
    Union,
    Windowed,
    sources,
)
from catalog.relation import Relation
from catalog.schema import Type
from secadmin.languages.borealis.diagram import parse_borealis
from secadmin.languages.writing.expression_text import expression_text, name_text
from secadmin.languages.writing.sql_text import aggregation_text
from secadmin.languages.writing.unsayable import PlannedRelations, Unsayable

_TYPES = {
    Type.BIGINT: "long",
    Type.DOUBLE: "double",
    Type.STRING: "string",
    Type.TIMESTAMP: "timestamp",
    Type.BOOLEAN: "bool",
}
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
Parameters = list[tuple[str, str]]


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


@dataclass
class _Writer:
    """Writes the boxes of some plans. Plans with an equal part share the box of this part."""

    outputs: Mapping[str, Plan]
    streams: dict[Node, str] = field(default_factory=dict)
    boxes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        plans = self.outputs.values()
        self._sources = {r.name: r for plan in plans for r in sources(plan)}
        self._taken = {*self.outputs, *self._sources}
        self._times = {
            id(each.node): each.event_time for plan in plans for each in analyse(plan).root.walk()
        }

    def text(self) -> str:
        for name, plan in self.outputs.items():
            updates = plan.emission is Emission.UPDATES
            if isinstance(plan.root, Source) or plan.root in self.streams:
                self._box("union", [self._stream(plan.root, updates)], [], name)
            else:
                self._write(plan.root, name, updates)
        schemas = "".join(map(_schema, self._sources.values()))
        inputs = "".join(
            f"  <input stream={quoteattr(name)} schema={quoteattr(name)}/>\n"
            for name in self._sources
        )
        outputs = "".join(f"  <output stream={quoteattr(name)}/>\n" for name in self.outputs)
        boxes = "".join(self.boxes)
        return f"<borealis>\n{inputs}{outputs}{schemas}{boxes}</borealis>\n"

    def _stream(self, node: Node, updates: bool) -> str:
        """The name of the stream that carries the tuples of a node."""
        if isinstance(node, Source):
            return node.relation.name
        if node not in self.streams:
            number = len(self.boxes) + 1
            while f"s{number}" in self._taken:
                number += 1
            name = f"s{number}"
            self._taken.add(name)
            self._write(node, name, updates)
        return self.streams[node]

    def _write(self, node: Node, name: str, updates: bool) -> None:
        """Write the box of a node, which writes the stream of this name."""
        match node:
            case Filter(below, condition):
                parameters = [("expression.0", expression_text(condition))]
                self._box("filter", [self._stream(below, updates)], parameters, name)
            case Project(Join() as below, columns):
                self._join(below, columns, name, updates)
            case Project(below, columns):
                parameters = _numbered(columns, "expression", "output-field-name")
                self._box("map", [self._stream(below, updates)], parameters, name)
            case Union(several):
                self._box("union", [self._stream(each, updates) for each in several], [], name)
            case Aggregate(Windowed() as windows):
                parameters = self._windows(node, windows, updates)
                self._box("aggregate", [self._stream(windows.input, updates)], parameters, name)
            case _:
                raise Unsayable("a join box gives its out-fields, and nothing comes between them")
        self.streams[node] = name

    def _windows(self, node: Aggregate, windows: Windowed, updates: bool) -> Parameters:
        parameters = [
            ("window-size-by", "VALUES"),
            ("window-size", _size(windows.window.size_ms)),
            ("advance", _size(windows.window.slide_ms)),
            ("order-by", self._times[id(windows.input)] or ""),
        ]
        if any(key.expression != AttributeRef(key.name) for key in node.keys):
            raise Unsayable("group-by names attributes; compute a key in a map before it")
        if node.keys:
            parameters.append(("group-by", ", ".join(key.name for key in node.keys)))
        for number, each in enumerate(node.aggregations):
            parameters.append((f"aggregate-function.{number}", aggregation_text(each)))
            parameters.append((f"aggregate-function-output-name.{number}", each.name))
        return [*parameters, ("emit", "UPDATES")] if updates else parameters

    def _join(self, node: Join, columns: tuple[Column, ...], name: str, updates: bool) -> None:
        sides = [node.left, node.right]
        below = [side.input for side in sides if isinstance(side, Project)]
        names = [side.columns[0].name for side in sides if isinstance(side, Project)]
        if [name.partition(".")[0] for name in names] != ["left", "right"]:
            raise Unsayable("the sides of a join box are called left and right, and here otherwise")
        conditions = [f"{name_text(a.name)} = {name_text(b.name)}" for a, b in node.equal]
        if node.condition is not None:
            conditions.append(f"({expression_text(node.condition)})")
        parameters = [
            ("predicate", " AND ".join(conditions)),
            ("left-buffer-size", _size(node.upper_ms)),
            ("right-buffer-size", _size(-node.lower_ms)),
            *_numbered(columns, "out-field", "out-field-name"),
        ]
        self._box("join", [self._stream(each, updates) for each in below], parameters, name)

    def _box(self, kind: str, inputs: list[str], parameters: Parameters, output: str) -> None:
        lines = [
            *(f"<in stream={quoteattr(stream)}/>" for stream in inputs),
            f"<out stream={quoteattr(output)}/>",
            *(f"<parameter name={quoteattr(n)} value={quoteattr(v)}/>" for n, v in parameters),
        ]
        inner = "".join(f"    {line}\n" for line in lines)
        self.boxes.append(f'  <box name={quoteattr(output)} type="{kind}">\n{inner}  </box>\n')


def _size(length_ms: int) -> str:
    unit, factor = next((unit, f) for unit, f in _UNITS if length_ms % f == 0 or f == 1)
    return f"{length_ms // factor}{unit}"


def _numbered(columns: tuple[Column, ...], value: str, name: str) -> Parameters:
    return [
        parameter
        for number, column in enumerate(columns)
        for parameter in (
            (f"{value}.{number}", expression_text(column.expression)),
            (f"{name}.{number}", column.name),
        )
    ]


def _schema(relation: Relation) -> str:
    fields = "".join(
        f'    <field name="{a.name}" type="{_TYPES[a.type]}"/>\n'
        for a in relation.schema.attributes
    )
    return f"  <schema name={quoteattr(relation.name)}>\n{fields}  </schema>\n"
