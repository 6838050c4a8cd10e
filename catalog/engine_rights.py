"""The rights of the engines in the catalog's database, where each account has a role of its own.

Only PostgreSQL has such rights. An SQLite file is open to everybody who may open it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlalchemy import Connection, Engine, exc, make_url, text

from catalog.engine import for_writing
from catalog.engines import INGEST
from catalog.errors import InvalidInput
from catalog.models import Base
from catalog.outage import outages_translated

QUERY = "query"
ALL: tuple[str, ...] = ()
"""All columns of a table."""
# Table -> right -> the columns to which it applies.
Rights = Mapping[str, Mapping[str, tuple[str, ...]]]

_READ = {"SELECT": ALL}
_REPORT = {"SELECT": ALL, "INSERT": ALL, "UPDATE": ALL}
_OF_ALL: Rights = {
    "generation": {"SELECT": ALL, "UPDATE": ("value",)},
    "heartbeats": _REPORT,
    "run_statuses": _REPORT,
    "topic_faults": {**_REPORT, "DELETE": ALL},
    "objects": {"SELECT": ("id", "removed_at")},
    "categories": _READ,
    "conflict_classes": _READ,
    "companies": _READ,
    "withdrawals": {"SELECT": ("topic", "done_at", "unproven")},
}
_TRIALS = (
    *("engine", "changed_beat", "on_trial", "trial_group", "tried", "tried_beat"),
    *("trials", "deaths", "parked_because"),
)
RIGHTS: Mapping[str, Rights] = MappingProxyType(
    {
        INGEST: {
            **_OF_ALL,
            "streams": _READ,
            "label_texts": _READ,
            "sender_policies": _READ,
            "user_levels": _READ,
            "senders": {"SELECT": ALL, "UPDATE": ("state",)},
            "assignments": _READ,
        },
        QUERY: {
            **_OF_ALL,
            "queries": {"SELECT": ("object_id", "running", "views_changed_at")},
            "executions": _READ,
            "outputs": _READ,
            "clause_roles": _READ,
            "floor_categories": _READ,
            "output_inputs": _READ,
            "independent_senders": _READ,
            "senders": {"SELECT": ("id", "stream_id", "user_id")},
            "delivery_classes": _READ,
            "backfills": {"SELECT": ("class_id", "after_ms", "ends", "ended_at")},
            "assignments": {"SELECT": ALL, "UPDATE": _TRIALS},
        },
    }
)
"""Account -> its rights. All else is refused: passwords, grants, sessions, the audit log."""

_TABLES = (*Base.metadata.tables, "alembic_version")
_TOO_MUCH = text(
    "SELECT name FROM unnest(CAST(:tables AS text[])) AS name WHERE "
    "has_table_privilege(:role, name, 'DELETE, TRUNCATE, TRIGGER') OR "
    "has_any_column_privilege(:role, name, 'SELECT, INSERT, UPDATE, REFERENCES')"
)


def give_engines_rights(engine: Engine, urls: Mapping[str, str]) -> None:
    """Give the role of each account in `urls` (account -> database URL) its rights, and no others.

    Call it as the owner of the tables. Raises InvalidInput if a URL does not name a role of its own
    of that server, or if the role may do more, such as a superuser. Raises Unavailable.
    """
    if not urls:
        return
    roles = {account: _role_of(url) for account, url in urls.items()}
    if engine.dialect.name != "postgresql":
        raise InvalidInput("only a catalog on PostgreSQL has roles for the engines")
    if len({*roles.values(), engine.url.username}) <= len(roles):
        raise InvalidInput("SecAdmin, ingest and the query engines need a database role each")
    with outages_translated(writing=True), for_writing(engine).begin() as connection:
        for account, role in roles.items():
            _give(connection, account, role)


def _role_of(url: str) -> str:
    try:
        role = make_url(url).username
    except exc.ArgumentError:
        role = None
    if not role:
        raise InvalidInput("the URL of an engine's catalog is postgresql://role@host/database")
    return role


def _give(connection: Connection, account: str, role: str) -> None:
    known = text("SELECT count(*) FROM pg_roles WHERE rolname = :role")
    if not connection.scalar(known, {"role": role}):
        raise InvalidInput(f"the database has no role {role!r}; make it first: CREATE ROLE … LOGIN")
    for statement in _statements(connection, account, role):
        connection.exec_driver_sql(statement)
    others = [name for name in _TABLES if name not in RIGHTS[account]]
    found = connection.scalars(_TOO_MUCH, {"role": role, "tables": others}).all()
    if found:
        raise InvalidInput(
            f"the database role {role!r} may use the table {min(found)}, which no engine needs; "
            "make it neither a superuser nor a member of another role"
        )


def _statements(connection: Connection, account: str, role: str) -> Iterator[str]:
    """What takes all rights from the role, and then gives it those of the account."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    for table in _TABLES:
        yield f"REVOKE ALL ON {quote(table)} FROM {quote(role)}"
    for table, rights in RIGHTS[account].items():
        for right, columns in rights.items():
            which = f" ({', '.join(map(quote, columns))})" if columns else ""
            yield f"GRANT {right}{which} ON {quote(table)} TO {quote(role)}"
