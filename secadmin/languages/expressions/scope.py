"""The attributes that a SELECT can name, and their names in the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from catalog.errors import InvalidInput, Position
from catalog.schema import AttributeType, Schema, StructType
from secadmin.languages.expressions.absent import reason
from secadmin.languages.typed import Typed, attribute


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute: its `name` in the query, its `inner` name in the plan, and its type.

    If it is computed, `made` gives its value at a position, and `inner` is what it is made of.
    """

    name: str
    inner: str
    type: AttributeType
    made: Callable[[Position | None], Typed] | None = None

    def value(self, position: Position | None) -> Typed:
        """Its value, where it is named at this position."""
        if self.made is not None:
            return self.made(position)
        return attribute(self.inner, self.type, position)


@dataclass(frozen=True, slots=True)
class Table:
    """The attributes of one item of FROM. `alias` is empty for a derived table without a name.

    Those that are `hidden` can be named, and * does not give them.
    """

    alias: str
    fields: tuple[Field, ...]
    hidden: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, alias: str, schema: Schema, prefix: str = "", hidden: frozenset[str] = frozenset()
    ) -> Table:
        """The attributes of a schema. In the plan their names have this prefix."""
        fields = tuple(Field(a.name, prefix + a.name, a.type) for a in schema.attributes)
        return cls(alias, fields, hidden)

    @property
    def shown(self) -> tuple[Field, ...]:
        """The attributes that * gives."""
        return tuple(field for field in self.fields if field.name not in self.hidden)


@dataclass(frozen=True, slots=True)
class Scope:
    """The tables of one FROM clause.

    `same` has pairs of inner names that a join compares. Their values are equal, so the plain name
    of both means the first. A query inside WHERE also names what is in the scope around it,
    `outer`.
    """

    tables: tuple[Table, ...]
    same: frozenset[tuple[str, str]] = frozenset()
    outer: Scope | None = None

    def resolve(self, name: str, alias: str | None, position: Position) -> Typed:
        """The attribute of a name, which may be qualified.

        Raises InvalidInput if there is no such attribute, or more than one.
        """
        if self.outer is not None and not self._names(name, alias):
            return self.outer.resolve(name, alias, position)
        tables = self.tables if alias is None else (self.table(alias, position),)
        every = [(t, f) for t in tables for f in t.fields]
        found = [(t, f) for t, f in every if f.name == name]
        # SQL writes names in any case, where this is not ambiguous.
        found = found or [(t, f) for t, f in every if f.name.lower() == name.lower()]
        found = [
            (table, field)
            for number, (table, field) in enumerate(found)
            if not any((other.inner, field.inner) in self.same for _, other in found[:number])
        ]
        if not found:
            known = ", ".join(dict.fromkeys(f.name for table in tables for f in table.fields))
            near = get_close_matches(name[:80], known.split(", "), n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            if not known:
                raise InvalidInput(
                    f"a constant belongs here, and {name[:80]!r} is a name", position
                )
            raise InvalidInput(
                reason(name) or f"unknown attribute {name[:80]!r}; there are: {known}{hint}",
                position,
            )
        if len(found) > 1:
            choices = " or ".join(f"{table.alias}.{name}" for table, _ in found)
            raise InvalidInput(f"{name!r} is ambiguous; write {choices}", position)
        return found[0][1].value(position)

    def _names(self, name: str, alias: str | None) -> bool:
        """Whether the name is one of this scope itself."""
        if alias is not None:
            return any(table.alias == alias for table in self.tables)
        names = {field.name.lower() for table in self.tables for field in table.fields}
        return name.lower() in names

    def behind_attribute(self, names: Sequence[str]) -> int:
        """How many of the names that dots connect are fields of the attribute before them."""
        first = names[0]
        if any(table.alias == first for table in self.tables):
            return len(names) - 2
        structure = any(
            field.name.lower() == first.lower() and isinstance(field.type, StructType)
            for table in self.tables
            for field in table.fields
        )
        if structure or self.outer is None:
            return len(names) - 1 if structure else 0
        return self.outer.behind_attribute(names)

    def table(self, alias: str, position: Position) -> Table:
        """The table of that alias. Raises InvalidInput."""
        for table in self.tables:
            if table.alias == alias:
                return table
        known = ", ".join(table.alias for table in self.tables if table.alias)
        raise InvalidInput(
            f"no relation is called {alias[:80]!r} here; there are: {known}", position
        )

    def has(self, name: str) -> bool:
        """Whether some table has an attribute of that name."""
        return any(field.name == name for table in self.tables for field in table.fields)
