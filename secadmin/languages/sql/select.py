"""One SELECT: FROM, WHERE, GROUP BY, HAVING and the list of results."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from catalog.conflict_class import LEVEL
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call
from catalog.moving_check import is_of_windows
from catalog.plan import (
    INSTANT,
    WINDOW_END,
    WINDOW_START,
    Column,
    Filter,
    Moving,
    MovingWindow,
    Project,
    Source,
    ToStream,
    walk,
)
from catalog.upserts import keys_of
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import Aggregates, NoCalls, Ungrouped, edge_marker
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.refusals import DISTINCT
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.expressions.windows import EDGES
from secadmin.languages.sql.from_clause import ReadQuery
from secadmin.languages.sql.grouping import (
    Outside,
    Selected,
    grouped,
    is_open_ended,
    read_aggregates,
    read_grouping,
)
from secadmin.languages.sql.inputs import read_from
from secadmin.languages.sql.moving import Selection, gives_upserts, read_moving, to_stream
from secadmin.languages.sql.orders import apart
from secadmin.languages.sql.over_windows import require_one_window
from secadmin.languages.sql.ranks import (
    has_over,
    is_ranked,
    limited,
    over_place,
    read_first,
    read_ranked,
    require_rows,
    without_window,
)
from secadmin.languages.sql.relations import relation_of
from secadmin.languages.sql.semi_joins import interval_semi_join, is_semi
from secadmin.languages.sql.set_operators import distinct
from secadmin.languages.sql.stars import is_star, star_columns
from secadmin.languages.sql.unnesting import unnested_results
from secadmin.languages.text import placed
from secadmin.languages.typed import Typed, known

_CLAUSES = ("expressions", "from_", "joins", "laterals", "where", "group", "having", "windows")
# Clauses over moving windows alone.
_OF_RELATIONS = ("distinct", "order", "limit")


def read_select(node: exp.Select, environment: Environment, read_query: ReadQuery) -> Built:
    """The plan of one SELECT. Raises InvalidInput, with its position.

    Over moving windows it is the stream of the changes of `read_relation`.
    """
    built = _read(node, environment, read_query)
    if not built.relation.checked.is_changing:
        return built.relation
    if built.made is not None and environment.moving.change is None:
        return _computed(
            to_stream(built.relation, environment, node), built.made, environment, node
        )
    if built.having is None or gives_upserts(built.relation, environment):
        return to_stream(built.whole(), environment, node)
    stream = to_stream(built.relation, environment, node)
    return build(Filter(stream.node, built.having), (stream,), built.having.position)


def read_relation(node: exp.Select, environment: Environment, read_query: ReadQuery) -> Built:
    """The relation of one SELECT over moving windows, each row as often as it is there.

    Raises InvalidInput.
    """
    # A set operator gives each row once, so DISTINCT says nothing new.
    node.set("distinct", None)
    relation = _read(node, environment, read_query).whole()
    if not relation.checked.is_changing:
        relation = relation_of(relation) or relation
    if not relation.checked.is_changing:
        raise InvalidInput(
            "a set operator other than UNION ALL goes over moving windows, which bound it: write "
            "FROM trades [RANGE 1 HOUR], or [ROWS 100]",
            environment.at(node),
        )
    return relation


def _read(node: exp.Select, environment: Environment, read_query: ReadQuery) -> Selection:
    environment.only(node, *_CLAUSES, *_OF_RELATIONS)
    if not node.expressions:
        raise InvalidInput("SELECT names no results; write * for all", environment.at(node))
    where = node.args.get("where")
    if where is not None:
        environment.only(where, "this")
    read = read_from(node, environment, read_query)
    source, scope, outside = read.built, read.scope, read.outside
    _require_own_levels(node, source, environment)
    source = _where(read.where, source, scope, environment, read_query)
    if source.checked.is_changing:
        environment.only(node.args.get("distinct") or node, *_CLAUSES, *_OF_RELATIONS)
        return _over_relation(node, source, scope, environment)
    open_ended = outside is None and is_open_ended(node, source)
    if has_over(node):
        require_rows(node, environment)
    ranked = outside is None and has_over(node)
    relation = open_ended or ranked
    environment.only(node, *_CLAUSES, *(_OF_RELATIONS if relation else ("distinct",)))
    if ranked:
        return _ranked(node, source, scope, environment)
    if node.args.get("distinct") is not None:
        raise InvalidInput(DISTINCT, environment.at(node))
    if environment.moving.change is not None and not _has_join(node):
        raise InvalidInput(
            f"{environment.moving.change.upper()} goes over a moving window, such as trades [ROWS "
            "100]; a query without a window gives each new result, so leave it out",
            environment.moving.position,
        )
    if open_ended:
        return _upserts(node, source, scope, environment)
    if node.args.get("group") is not None:
        source, columns = _grouped(node, source, scope, environment, outside)
    elif outside is not None and has_over(node):
        raise InvalidInput(
            "OVER goes over groups of a window, and not over its single tuples: make groups in a "
            "query inside FROM, such as TOPK(price, 3) for the highest ones, or write a moving "
            "window, such as FROM trades [RANGE 1 HOUR]",
            over_place(node, environment),
        )
    elif outside is not None:
        raise InvalidInput(
            "a window is for the groups of an aggregate: add GROUP BY"
            + (" window_start, window_end" if outside.named else ""),
            environment.at(node),
        )
    else:
        source, scope = unnested_results(node, source, scope, environment)
        columns = _plain(node, scope, environment)
    return Selection(_project(source, columns, environment, node))


def _where(
    wheres: Sequence[exp.Expr],
    source: Built,
    scope: Scope,
    environment: Environment,
    read_query: ReadQuery,
) -> Built:
    """The tuples of a stream that these conditions of WHERE keep."""
    parts = [part for where in wheres for part in conditions(where, environment.place)]
    asked = [part for part in parts if is_semi(part)]
    reader = Reader(environment, scope, NoCalls("WHERE"))
    # What asks for tuples of another stream goes over what the others keep.
    plain = parts if asked else wheres
    kept = [reader.read(part).expression for part in plain if part not in asked]
    if not asked and len(kept) > 1:
        kept = [Call("and", tuple(kept), kept[0].position)]
    for condition in kept:
        source = limited(source, condition)
        source = build(Filter(source.node, condition), (source,), condition.position)
    for part in asked:
        source = interval_semi_join(source, scope, part, environment, read_query)
    return source


def _upserts(node: exp.Select, source: Built, scope: Scope, environment: Environment) -> Selection:
    """GROUP BY without a window: groups of all tuples so far, whose results replace each other."""
    place = environment.at(node.args["group"])
    endless = build(Moving(source.node, MovingWindow()), (source,), place)
    found = _over_relation(node, endless, scope, environment)
    if not is_ranked(node):
        with placed(place):
            keys_of(found.relation.node)
    return found


def _ranked(node: exp.Select, source: Built, scope: Scope, environment: Environment) -> Selection:
    """OVER without a moving window."""
    endless = without_window(node, source, environment)
    found = _over_relation(node, endless, scope, environment)
    if is_of_windows(found.relation.checked):
        require_one_window(found.relation, source, over_place(node, environment))
    return found


def _computed(
    stream: Built, made: tuple[Column, ...], environment: Environment, node: exp.Select
) -> Built:
    """What a query computes of the changes of a relation."""
    time = (Column(INSTANT, AttributeRef(INSTANT)),) if isinstance(stream.node, ToStream) else ()
    return _project(stream, (*time, *made), environment, node)


def _has_join(node: exp.Select) -> bool:
    return bool(node.args.get("joins"))


def _over_relation(
    node: exp.Select, source: Built, scope: Scope, environment: Environment
) -> Selection:
    """The relation of a SELECT over moving windows."""

    def project(built: Built, columns: tuple[Column, ...]) -> Built:
        return _project(built, columns, environment, node)

    if is_ranked(node) and node.args.get("group") is not None and not has_over(node):
        return _first_groups(node, source, scope, environment)
    if is_ranked(node):
        ranked, columns = read_ranked(node, source, scope, environment)
        if all(isinstance(each.expression, AttributeRef) for each in columns):
            return Selection(project(ranked, columns))
        read, made = apart(columns)
        return Selection(project(ranked, read), made=made)
    is_distinct = node.args.get("distinct") is not None
    summed = read_moving(node, source, scope, environment, _item, project)
    if summed is not None:
        if is_distinct:
            raise InvalidInput(
                "DISTINCT goes over single tuples; over groups leave it out, because each group "
                "has one row",
                environment.at(node),
            )
        return summed
    shown = project(source, _plain(node, scope, environment))
    return Selection(distinct(shown, environment.at(node)) if is_distinct else shown)


def _first_groups(
    node: exp.Select, source: Built, scope: Scope, environment: Environment
) -> Selection:
    """The first ones of groups: GROUP BY ... ORDER BY ... LIMIT."""
    order, limit = node.args.get("order"), node.args.get("limit")
    for clause in ("order", "limit"):
        node.set(clause, None)
    groups = _over_relation(node, source, scope, environment).whole()
    for clause, value in (("order", order), ("limit", limit)):
        node.set(clause, value)
    return Selection(read_first(node, groups, environment))


def _grouped(
    node: exp.Select,
    source: Built,
    scope: Scope,
    environment: Environment,
    outside: Outside | None,
) -> tuple[Built, tuple[Column, ...]]:
    group, having = node.args["group"], node.args.get("having")
    grouping = read_grouping(group, source, scope, environment, outside)
    reader, found = read_aggregates(grouping, environment, scope)
    items = []
    for item in node.expressions:
        if is_star(item):
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
        if is_star(item):
            columns += star_columns(item, scope, environment)
        else:
            name, value = _item(item, reader)
            columns.append(Column(name, value.expression))
    return tuple(columns)


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
    if alias is None and isinstance(reader.calls, Aggregates):
        # In CQL and ksqlDB people give no names to aggregates.
        alias = _suggested(node)
    if alias is None:
        hint = _suggested(node)
        raise InvalidInput(
            "give this result a name with AS" + (f", such as AS {hint}" if hint else ""),
            environment.at(node),
        )
    return alias, value


def _suggested(node: exp.Expr) -> str | None:
    """A name for the result of a call: min_price for MIN(price), count_all for COUNT(*)."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    argument = node.expressions[0]
    if isinstance(argument, exp.Star):
        return f"{node.this}_all".lower()
    if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Identifier):
        return f"{str(node.this).lower()}_{argument.this.this}"
    return None


def _own_name(node: exp.Expr, value: Typed) -> str | None:
    if isinstance(node, exp.Column) and node.this.this not in EDGES:
        return str(node.this.this)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return str(node.expression.this)
    # TUMBLE_START() without AS gets the name window_start.
    edges = {edge_marker(edge): edge for edge in (WINDOW_START, WINDOW_END)}
    match value.expression:
        case AttributeRef(name):
            return edges.get(name, str(node.this.this) if isinstance(node, exp.Column) else None)
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


def _require_own_levels(node: exp.Select, source: Built, environment: Environment) -> None:
    """Refuse a result that is called level and is something else.

    The platform makes the levels of tuples, and nobody writes them (001 §3).
    """
    for item in node.expressions:
        named = isinstance(item, exp.Alias) and environment.identifier(item.args["alias"]) == LEVEL
        if not named or _own_name_of_column(item.this) == LEVEL:
            continue
        relations = (each.relation for each in walk(source.node) if isinstance(each, Source))
        if any(relation.conflict_classes for relation in relations):
            raise InvalidInput(
                "the platform makes the level of a tuple; call this result by another name",
                environment.at(item),
            )


def _own_name_of_column(node: exp.Expr) -> str | None:
    return str(node.this.this) if isinstance(node, exp.Column) else None
