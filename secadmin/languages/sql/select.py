"""One SELECT: FROM, WHERE, GROUP BY, HAVING and the list of results."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import WINDOW_END, WINDOW_START, Column, Filter, Project
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls, Ungrouped, edge_marker
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.sql.from_clause import ReadQuery, read_item
from secadmin.languages.sql.grouping import Selected, grouped, read_aggregates, read_grouping
from secadmin.languages.sql.joins import join
from secadmin.languages.typed import Typed, attribute, known

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having")


def read_select(node: exp.Select, environment: Environment, read_query: ReadQuery) -> Built:
    """The plan of one SELECT. Raises InvalidInput, with its position."""
    environment.only(node, *_CLAUSES)
    if not node.expressions:
        raise InvalidInput("SELECT names no results; write * for all", environment.at(node))
    source, scope = _from(node, environment, read_query)
    where = node.args.get("where")
    if where is not None:
        environment.only(where, "this")
        condition = Reader(environment, scope, NoCalls("WHERE")).read(where.this)
        source = build(Filter(source.node, condition.expression), (source,), condition.position)
    if node.args.get("group") is not None:
        source, columns = _grouped(node, source, scope, environment)
    else:
        columns = _plain(node, scope, environment)
    return _project(source, columns, environment, node)


def _from(node: exp.Select, environment: Environment, read_query: ReadQuery) -> tuple[Built, Scope]:
    clause = node.args.get("from_")
    if clause is None:
        raise InvalidInput("a query reads from a stream or output: add FROM", environment.at(node))
    environment.only(clause, "this")
    left = read_item(clause.this, environment, read_query)
    joins = node.args.get("joins") or []
    if not joins:
        return left.built, left.scope
    if len(joins) > 1:
        raise InvalidInput(
            "a query has one join between a source and its output; add this part as a query "
            "of its own over the other one's output",
            environment.at(joins[1]),
        )
    return join(
        left,
        read_item(joins[0].this, environment, read_query),
        _on(joins[0], environment),
        environment,
    )


def _on(node: exp.Expr, environment: Environment) -> exp.Expr:
    if (
        node.args.get("side")
        or node.args.get("method")
        or node.args.get("kind")
        not in (
            None,
            "",
            "INNER",
        )
    ):
        raise InvalidInput("only inner joins: write JOIN ... ON", environment.at(node))
    on = node.args.get("on")
    if not isinstance(on, exp.Expr):
        raise InvalidInput(
            "a join names what is equal and bounds the time: write JOIN ... ON a.k = b.k AND "
            "b.ts BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts + INTERVAL '5' MINUTE",
            environment.at(node),
        )
    environment.only(node, "this", "on", "kind")
    return on


def _grouped(
    node: exp.Select, source: Built, scope: Scope, environment: Environment
) -> tuple[Built, tuple[Column, ...]]:
    group, having = node.args["group"], node.args.get("having")
    grouping = read_grouping(group, source, scope, environment)
    reader, found = read_aggregates(grouping, environment, scope)
    items = []
    for item in node.expressions:
        if _is_star(item):
            raise InvalidInput("with GROUP BY, name each result", environment.at(item))
        items.append(_item(item, reader))
    condition = None
    if having is not None:
        environment.only(having, "this")
        condition = reader.read(having.this)
    return grouped(source, grouping, Selected(items, condition, found))


def _plain(node: exp.Select, scope: Scope, environment: Environment) -> tuple[Column, ...]:
    if node.args.get("having") is not None:
        place = environment.at(node.args["having"])
        raise InvalidInput("HAVING filters groups; without GROUP BY write WHERE", place)
    reader = Reader(environment, scope, Ungrouped())
    columns: list[Column] = []
    for item in node.expressions:
        if _is_star(item):
            columns += _star(item, scope, environment)
        else:
            name, value = _item(item, reader)
            columns.append(Column(name, value.expression))
    return tuple(columns)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _star(node: exp.Expr, scope: Scope, environment: Environment) -> list[Column]:
    place = environment.at(node)
    tables = scope.tables
    if isinstance(node, exp.Column):
        environment.only(node, "this", "table")
        tables = (scope.table(environment.identifier(node.args["table"]), place),)
        node = node.this
    environment.only(node)
    return [
        Column(f.name, attribute(f.inner, f.type, place).expression)
        for table in tables
        for f in table.fields
    ]


def _item(node: exp.Expr, reader: Reader) -> tuple[str, Typed]:
    environment = reader.environment
    alias = None
    if isinstance(node, exp.Alias):
        environment.only(node, "this", "alias")
        alias = environment.new_name(node.args["alias"])
        node = node.this
    value = reader.read(node)
    known(value)
    if alias is None:
        alias = _own_name(node, value)
    if alias is None:
        raise InvalidInput("give this result a name with AS", environment.at(node))
    return alias, value


def _own_name(node: exp.Expr, value: Typed) -> str | None:
    if isinstance(node, exp.Column):
        return str(node.this.this)
    # TUMBLE_START() without AS gets the name window_start.
    edges = {edge_marker(edge): edge for edge in (WINDOW_START, WINDOW_END)}
    match value.expression:
        case AttributeRef(name):
            return edges.get(name)
    return None


def _project(
    source: Built, columns: tuple[Column, ...], environment: Environment, node: exp.Expr
) -> Built:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise InvalidInput(
                f"two results are called {column.name!r}; rename one with AS",
                column.expression.position,
            )
        seen.add(column.name)
    same = tuple((column.name, column.expression) for column in columns) == tuple(
        (name, AttributeRef(name)) for name in source.schema.names
    )
    if same:
        return source
    return build(Project(source.node, columns), (source,), environment.at(node))
