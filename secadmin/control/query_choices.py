"""What the caller chose for a query: its roles, its level and its semantics."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import InvalidInput
from catalog.names import space_in
from catalog.placement import PLACEMENTS, STRONG, Placement
from secadmin.control.query_definition import QueryDefinition
from secadmin.languages import Statement, sql_statement


@dataclass(frozen=True, slots=True)
class QueryChoices:
    """The roles with which a query reads, its level, and where its fan-out is.

    Without `roles`, all active roles count. `level` is as it was written, or None.
    """

    roles: tuple[str, ...]
    level: str | None
    placement: Placement


def choices_of(wanted: QueryDefinition) -> QueryChoices:
    """What the caller chose, in the text or beside it. Raises InvalidInput if the two differ."""
    named = sql_statement(wanted.text) if wanted.language == "sql" else Statement()
    return QueryChoices(_roles(wanted, named), _level(wanted, named), _placement(wanted, named))


def _level(wanted: QueryDefinition, named: Statement) -> str | None:
    if named.level is not None and wanted.level is not None:
        raise InvalidInput("the text has AT LEVEL, so leave the other level out")
    return named.level or wanted.level


def _placement(wanted: QueryDefinition, named: Statement) -> Placement:
    if named.semantics is not None and wanted.semantics not in (None, named.semantics):
        raise InvalidInput(
            f"the text has SEMANTICS {named.semantics.upper()}, and {wanted.semantics} was chosen "
            "beside it; name one semantics"
        )
    return PLACEMENTS[named.semantics or wanted.semantics or STRONG]


def _roles(wanted: QueryDefinition, named: Statement) -> tuple[str, ...]:
    """The roles in the text, beside it, or the one in the query's name."""
    if named.roles and wanted.as_roles and {*named.roles} != {*wanted.as_roles}:
        raise InvalidInput(
            f"the text reads AS {', '.join(named.roles)}, and {', '.join(wanted.as_roles)} was "
            "chosen beside it; name the roles once"
        )
    chosen, space = named.roles or wanted.as_roles, space_in(wanted.name)
    if space is not None and chosen not in ((), (space,)):
        raise InvalidInput(
            f"the name is in the space of the role {space}, and the query reads AS "
            f"{', '.join(chosen)}; name one role"
        )
    return (space,) if space is not None else chosen
