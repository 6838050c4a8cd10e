"""UNNEST and EXPLODE: one tuple for each element of an array, as people write it.

In FROM it is `CROSS JOIN UNNEST(tags) AS t(tag)`, also behind a comma, with LEFT JOIN ... ON TRUE
or WITH ORDINALITY. `LATERAL VIEW EXPLODE(tags) t AS tag` is the same. In SELECT it is a whole
result: `EXPLODE(tags) AS tag`. All give the same node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.plan import Unnest
from catalog.schema import ArrayType, AttributeType, MapType, StructType, Type
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.nested_values import element_of, field_of
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Field, Scope, Table
from secadmin.languages.typed import Typed, attribute, call, known, literal

_FORM = "CROSS JOIN UNNEST(tags) AS t(tag)"
# The functions of Spark and ksqlDB. Those with POS also give places, from 0.
_CALLS = ("unnest", "explode", "explode_outer", "posexplode", "posexplode_outer")
# What a result of SELECT is called in the plan, and the name of its table, which nobody can write.
_IN_SELECT, _UNWRITABLE = "explode", "explode()"
# The element of an array that is shown by its fields.
_ELEMENT = "element"


@dataclass(frozen=True, slots=True)
class Unnesting:
    """What is to be unnested. `node` has the position, `array` is the array or map.

    `names` are those of the elements; without any, a structure has those of its fields. `number` is
    the name of the places, which count from `first`. With `keeps`, a tuple without elements stays.
    """

    node: exp.Expr
    array: exp.Expr
    alias: str
    names: tuple[str, ...]
    number: str | None = None
    first: int = 1
    keeps: bool = False


def take_unnesting(node: exp.Select, environment: Environment) -> Unnesting | None:
    """Take UNNEST or LATERAL VIEW off the FROM of a SELECT. Raises InvalidInput."""
    joins = list(node.args.get("joins") or ())
    found = [_of_join(each, environment) for each in joins if isinstance(each.this, exp.Unnest)]
    rest = [each for each in joins if not isinstance(each.this, exp.Unnest)]
    if found and rest != joins[: len(rest)]:
        raise InvalidInput(
            "UNNEST comes last in FROM: write it behind the joins, or with what it goes over in a "
            "query inside FROM",
            environment.at(found[0].node),
        )
    found += [_of_view(each, environment) for each in node.args.get("laterals") or ()]
    node.set("joins", rest)
    node.set("laterals", None)
    if len(found) > 1:
        raise InvalidInput(
            "a query unnests one array on the way to a result; add the inner part as a query of "
            "its own, and unnest the other one of its results",
            environment.at(found[1].node),
        )
    return found[0] if found else None


def _of_join(joined: exp.Expr, environment: Environment) -> Unnesting:
    """UNNEST behind a comma or JOIN."""
    node = joined.this
    environment.only(joined, "this", "on", "kind", "side")
    environment.only(node, "expressions", "alias", "offset")
    kind = " ".join(str(joined.args.get(part) or "").upper() for part in ("side", "kind")).strip()
    on = joined.args.get("on")
    always = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
    if kind not in ("", "CROSS", "INNER", "LEFT", "LEFT OUTER") or not always:
        raise InvalidInput(
            f"UNNEST has no condition: write {_FORM}, or LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE, "
            "and conditions in WHERE",
            environment.at(node if on is None else on),
        )
    if len(node.expressions) != 1:
        raise InvalidInput(f"UNNEST takes one array: write {_FORM}", environment.at(node))
    alias, names = _alias(node, environment)
    offset = node.args.get("offset")
    number = None
    if offset:
        if not isinstance(offset, exp.Identifier) or not names:
            raise InvalidInput(
                "WITH ORDINALITY needs a name: UNNEST(tags) WITH ORDINALITY AS t(tag, nth)",
                environment.at(node),
            )
        number = environment.new_name(offset)
    keeps = kind.startswith("LEFT")
    return Unnesting(node, node.expressions[0], alias, names, number, keeps=keeps)


def _of_view(node: exp.Expr, environment: Environment) -> Unnesting:
    """LATERAL VIEW EXPLODE(tags) t AS tag (Spark)."""
    environment.only(node, "this", "view", "outer", "alias")
    function = node.this
    name = _called(function)
    if name is None or not node.args.get("view"):
        raise InvalidInput(
            f"LATERAL goes with VIEW EXPLODE(tags) t AS tag; or write {_FORM}", environment.at(node)
        )
    environment.only(function, "this", "expressions")
    if len(function.expressions) != 1:
        raise InvalidInput(f"{name.upper()} takes one array", environment.at(function))
    alias, names = _alias(node, environment)
    number = None
    if name.startswith("pos"):
        if len(names) < 2:
            raise InvalidInput(
                "POSEXPLODE gives places and elements: LATERAL VIEW POSEXPLODE(tags) t AS nth, tag",
                environment.at(function),
            )
        number, *others = names
        names = tuple(others)
    keeps = bool(node.args.get("outer")) or name.endswith("_outer")
    return Unnesting(function, function.expressions[0], alias, names, number, 0, keeps)


def _alias(node: exp.Expr, environment: Environment) -> tuple[str, tuple[str, ...]]:
    """The name of the elements' table, and the names of its attributes."""
    alias = node.args.get("alias")
    columns = alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()
    # LATERAL VIEW EXPLODE(tags) AS tag names no table.
    named = alias.args.get("this") or (columns[0] if columns else None) if alias else None
    if alias is None or named is None:
        raise InvalidInput(f"the elements need a name: write {_FORM}", environment.at(node))
    environment.only(alias, "this", "columns")
    names = tuple(environment.new_name(each) for each in columns)
    return environment.new_name(named), names


def _called(node: exp.Expr) -> str | None:
    """The function of this module that a node calls."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    return name if name in _CALLS else None


def unnested(
    built: Built, scope: Scope, wanted: Unnesting, environment: Environment
) -> tuple[Built, Scope]:
    """The tuples of FROM once for each element, and the scope of a SELECT over them.

    Raises InvalidInput.
    """
    place = environment.at(wanted.node)
    if built.checked.is_changing:
        raise InvalidInput(
            "UNNEST goes over streams. Name the elements in a query of WITH, and put the window "
            "behind that name: FROM each [ROWS 100]",
            place,
        )
    if any(table.alias == wanted.alias for table in scope.tables):
        raise InvalidInput(f"two relations are called {wanted.alias!r}; rename one", place)
    whole = Reader(environment, scope, NoCalls("UNNEST")).read(wanted.array)
    kind = known(whole)
    array = call("map_keys", [whole], place) if isinstance(kind, MapType) else whole
    element = known(array)
    if not isinstance(element, ArrayType):
        raise InvalidInput(f"UNNEST takes an array or a map, and this is {kind}", place)
    inner, fields = _elements(wanted, whole, element.element, place)
    number = None
    if wanted.number is not None:
        number = f"{wanted.alias}.{wanted.number}"
        fields.insert(0 if wanted.first == 0 else len(fields), _places(wanted, number))
    names = [each.name for each in fields]
    if len({*names}) < len(names):
        raise InvalidInput("two attributes of UNNEST have one name; rename one", place)
    node = Unnest(built.node, array.expression, inner, number, wanted.keeps)
    table = Table(wanted.alias, tuple(fields))
    return build(node, (built,), place), replace(scope, tables=(*scope.tables, table))


def _elements(
    wanted: Unnesting, whole: Typed, kind: AttributeType, place: Position
) -> tuple[str, list[Field]]:
    """The name of the elements in the plan, and the attributes that show them."""
    if isinstance(whole.type, MapType):
        names = wanted.names or ("key", "value")
        _require(names, 2, "the keys and the values of a map", place)
        inner = f"{wanted.alias}.{names[0]}"
        key = attribute(inner, Type.STRING, place)
        value = Field(
            names[1], inner, whole.type.value, lambda at: element_of(whole, key, at or place)
        )
        return inner, [Field(names[0], inner, Type.STRING), value]
    if isinstance(kind, StructType) and len(wanted.names) != 1:
        own = tuple(each.name for each in kind.fields)
        names = wanted.names or own
        _require(names, len(own), f"the fields of {kind}", place)
        inner = f"{wanted.alias}.{_ELEMENT}"
        pairs = zip(names, kind.fields, strict=True)
        return inner, [_field(name, inner, kind, each.name, each.type) for name, each in pairs]
    names = wanted.names or (wanted.alias,)
    _require(names, 1, "the elements", place)
    inner = f"{wanted.alias}.{names[0]}"
    return inner, [Field(names[0], inner, kind)]


def _field(name: str, inner: str, whole: StructType, part: str, kind: AttributeType) -> Field:
    def made(at: Position | None) -> Typed:
        return field_of(attribute(inner, whole, at), part, at or Position(1, 1))

    return Field(name, inner, kind, made)


def _places(wanted: Unnesting, number: str) -> Field:
    if wanted.number is None or wanted.first == 1:
        return Field(wanted.number or "", number, Type.BIGINT)

    def made(at: Position | None) -> Typed:
        one = literal(1 - wanted.first, Type.BIGINT, at)
        return call("-", [attribute(number, Type.BIGINT, at), one], at)

    return Field(wanted.number, number, Type.BIGINT, made)


def _require(names: Sequence[str], count: int, what: str, place: Position) -> None:
    if len(names) != count:
        raise InvalidInput(
            f"UNNEST gives {what}, so it takes {count} name{'' if count == 1 else 's'}, and not "
            f"{len(names)}",
            place,
        )


def unnested_results(
    node: exp.Select, built: Built, scope: Scope, environment: Environment
) -> tuple[Built, Scope]:
    """The tuples of FROM once for each element of what a result of SELECT explodes.

    The result becomes a plain name. Raises InvalidInput.
    """
    found = [
        each
        for each in node.expressions
        if _called(each.this if isinstance(each, exp.Alias) else each) is not None
    ]
    if not found:
        return built, scope
    first, *others = found
    if not isinstance(first, exp.Alias):
        raise InvalidInput(
            "give the elements a name with AS: EXPLODE(tags) AS tag", environment.at(first)
        )
    function, name = first.this, environment.new_name(first.args["alias"])
    wanted = _called(function) or ""
    if others or wanted.startswith("pos"):
        raise InvalidInput(
            f"SELECT explodes one array, into one result; for more write {_FORM} in FROM",
            environment.at((others or [first])[0]),
        )
    if len(function.expressions) != 1:
        raise InvalidInput(f"{wanted.upper()} takes one array", environment.at(function))
    made, around = unnested(
        built,
        scope,
        Unnesting(
            *(function, function.expressions[0], _IN_SELECT, (name,)),
            keeps=wanted.endswith("_outer"),
        ),
        environment,
    )
    start = function.meta.get("start")
    plain = exp.Column(this=exp.to_identifier(name), table=exp.to_identifier(_UNWRITABLE))
    for part in (plain.this, plain.args["table"]):
        part.meta.update({"start": start})
    first.set("this", plain)
    hidden = replace(around.tables[-1], alias=_UNWRITABLE, hidden=frozenset({name}))
    return made, replace(around, tables=(*around.tables[:-1], hidden))
