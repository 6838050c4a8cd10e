"""`parse_sql` makes a plan of a query in SQL."""

from __future__ import annotations

from sqlglot import exp

from catalog.analysis import complete, require_windows
from catalog.checked_plan import CheckedPlan, StateKind
from catalog.conflict_class import LEVEL
from catalog.errors import InvalidInput, PlatformError
from catalog.expression import AttributeRef
from catalog.plan import Column, Emission, Project, Union
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.statement import Emit, Statement
from secadmin.languages.expressions.syntax import (
    ParsedQuery,
    chain,
    parse_query,
    statement_of,
)
from secadmin.languages.resolver import Resolver
from secadmin.languages.sql.moving import to_stream
from secadmin.languages.sql.select import read_relation, read_select
from secadmin.languages.sql.set_operators import is_set_operator, read_set
from secadmin.languages.text import check_text, placed

MAX_BYTES = 64 * 1024


def sql_statement(text: str) -> Statement:
    """The words around a query: its roles (000 §4.1), level (001 §3), semantics, and others.

    Raises InvalidInput, as `parse_sql`.

    >>> words = sql_statement("AS doctor, nurse AT LEVEL [Company1, T] SELECT n FROM vitals")
    >>> words.roles, words.level, words.semantics
    (('doctor', 'nurse'), '[Company1, T]', None)
    """
    return statement_of(text, check_text(text, MAX_BYTES).position)


def parse_sql(text: str, resolver: Resolver, name: str | None = None) -> CheckedPlan:
    """The checked plan of one query in the SQL subset of `grammar.md`.

    The resolver looks up every name of a relation, each time it is used. `name` is the name that
    the output gets. If the text has a CREATE with another name, it is refused.

    Raises:
        InvalidInput: Something is not in the language, or does not fit the schemas. It has line
            and column.
        UnknownRelation: The resolver does not find a name. It is an InvalidInput.
        PlatformError: The resolver raised it.
    """
    lines = check_text(text, MAX_BYTES)
    parsed = parse_query(text, lines.position, lambda name: _gives_upserts(resolver, name))
    tree, statement = parsed.tree, parsed.statement
    if name is not None and statement.name not in (None, name):
        raise InvalidInput(
            f"the text creates {statement.name!r}, and the output is called {name!r}: "
            "use one name for both, or write the SELECT alone",
            lines.position(statement.name_offset),
        )
    environment = Environment(
        *(lines.position, resolver),
        moving=parsed.moving,
        matches=parsed.matches,
        names_level=_names_level(parsed),
    )
    try:
        built = _read_query(tree, environment)
        emission = Emission.CLOSED
        if statement.emit is Emit.UPDATES:
            emission = Emission.UPDATES
            with placed(lines.position(statement.emit_offset)):
                require_windows(built.checked)
        elif statement.emit is Emit.CHANGES and built.checked.keeps_state:
            # A query without a window sends each result at once, which is what CHANGES asks for.
            states = {each.state for each in built.checked.walk()}
            emission = Emission.UPDATES if StateKind.GROUPS in states else Emission.CLOSED
        with placed(environment.at(tree)):
            return complete(built.checked, emission)
    except RecursionError:
        raise InvalidInput("the query is nested too deeply; split it in two") from None


def _gives_upserts(resolver: Resolver, name: str) -> bool:
    """Whether a query reads what has this name as a changing relation."""
    try:
        return bool(resolver.relation(name).keys)
    except PlatformError:
        # The name is refused where it is read, with its place.
        return False


def _names_level(parsed: ParsedQuery) -> bool:
    """Whether the text names the level of tuples anywhere."""
    names = {ref.name for window in parsed.moving.windows.values() for ref in window.partition}
    trees = [parsed.tree]
    for match in parsed.matches.values():
        names |= {name for name, _ in match.partition}
        trees += [tree for _, tree, _ in (*match.measures, *match.definitions)]
    names |= {
        str(node.this.this).lower()
        for tree in trees
        for node in tree.find_all(exp.Column)
        if isinstance(node.this, exp.Identifier)
    }
    return LEVEL in names


def _read_query(node: exp.Expr, environment: Environment) -> Built:
    """The plan of a SELECT or UNION ALL, perhaps in parentheses, and of the WITH before it."""
    clause = node.args.get("with_")
    if clause is not None:
        environment = _read_with(clause, environment)
        node.set("with_", None)
    match node:
        case exp.Select():
            return read_select(node, environment, _read_query)
        case exp.SetOperation() if is_set_operator(node):
            return _read_set(node, environment)
        case exp.Union():
            return _read_union(node, environment)
        case exp.Subquery():
            environment.only(node, "this")
            return _read_query(node.this, environment)
        case _:
            raise InvalidInput("a query starts with SELECT or WITH", environment.at(node))


def _read_with(clause: exp.Expr, environment: Environment) -> Environment:
    environment.only(clause, "expressions")
    for part in clause.expressions:
        environment.only(part, "this", "alias")
        alias = part.args["alias"]
        environment.only(alias, "this")
        name = environment.new_name(alias.this)
        if name in environment.named:
            raise InvalidInput(f"{name!r} is defined twice", environment.at(alias))
        environment = environment.naming(name, _read_query(part.this, environment.within()))
    return environment


def _read_set(node: exp.SetOperation, environment: Environment) -> Built:
    """The stream of the changes of UNION, EXCEPT or INTERSECT."""

    def read(side: exp.Expr) -> Built:
        if not isinstance(side, exp.Select):
            raise environment.refused(side)
        return read_relation(side, environment.within(), _read_query)

    return to_stream(read_set(node, environment, read), environment, node)


def _read_union(node: exp.Union, environment: Environment) -> Built:
    operands = chain(node, place=environment.place)  # refuses `distinct`
    first, *rest = (_read_query(operand, environment) for operand in operands)
    branches = [first]
    for operand, branch in zip(operands[1:], rest, strict=True):
        branches.append(_renamed(branch, first.schema.names, operand, environment))
    inputs = tuple(branches)
    return build(Union(tuple(b.node for b in inputs)), inputs, environment.at(node))


def _renamed(
    branch: Built, names: tuple[str, ...], node: exp.Expr, environment: Environment
) -> Built:
    """The branch with the names of the first branch, because UNION matches by position."""
    own = branch.schema.names
    place = environment.at(node)
    if len(own) != len(names):
        raise InvalidInput(
            f"this branch of UNION ALL has {len(own)} attributes, the first {len(names)}", place
        )
    if own == names:
        return branch
    columns = tuple(
        Column(new, AttributeRef(old, place)) for new, old in zip(names, own, strict=True)
    )
    return build(Project(branch.node, columns), (branch,), place)
