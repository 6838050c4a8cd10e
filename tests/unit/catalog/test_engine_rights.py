"""What the engines' roles may do in PostgreSQL: all of their work, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

from catalog.assignments import assign, parked
from catalog.engine_rights import give_engines_rights
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.errors import InvalidInput, Unavailable
from catalog.limits import Limits
from catalog.migrations import upgrade
from catalog.models import Base, Object, RunStatus, SenderRow, TopicFault
from catalog.plan import Source
from catalog.probation import PROVEN_BEATS
from catalog.pulse import heartbeat_of
from catalog.run_names import query_run_name
from catalog.runs import IngestRun, QueryRun, RunReport
from catalog.sender_state import SenderState
from catalog.store import Catalog
from secfilter.catalog_ledger import CatalogLedger
from tests.audit_key import AUDIT_KEY
from tests.postgresql import PostgresqlServer
from tests.unit.catalog.test_wanted import Filled
from tests.unit.catalog.world import START, World

ACCOUNTS = ("ingest", "query")
ALL = "all columns"
REPORT = {"SELECT": ALL, "INSERT": ALL, "UPDATE": ALL}
BOTH: dict[str, dict[str, str]] = {
    "generation": {"SELECT": ALL, "UPDATE": "value"},
    "heartbeats": REPORT,
    "run_statuses": REPORT,
    "topic_faults": {**REPORT, "DELETE": ALL},
    "objects": {"SELECT": "id removed_at"},
    "categories": {"SELECT": ALL},
    "conflict_classes": {"SELECT": ALL},
    "companies": {"SELECT": ALL},
    "withdrawals": {"SELECT": "topic done_at unproven"},
}
TRIALS = "engine changed_beat on_trial trial_group tried tried_beat trials deaths parked_because"
# What is not in the table is refused.
MAY = {
    "ingest": {
        **BOTH,
        "streams": {"SELECT": ALL},
        "label_texts": {"SELECT": ALL},
        "sender_policies": {"SELECT": ALL},
        "user_levels": {"SELECT": ALL},
        "senders": {"SELECT": ALL, "UPDATE": "state"},
        "assignments": {"SELECT": ALL},
    },
    "query": {
        **BOTH,
        "queries": {"SELECT": "object_id running views_changed_at"},
        "executions": {"SELECT": ALL},
        "outputs": {"SELECT": ALL},
        "clause_roles": {"SELECT": ALL},
        "floor_categories": {"SELECT": ALL},
        "output_inputs": {"SELECT": ALL},
        "independent_senders": {"SELECT": ALL},
        "senders": {"SELECT": "id stream_id user_id"},
        "delivery_classes": {"SELECT": ALL},
        "backfills": {"SELECT": "class_id after_ms ends ended_at"},
        "assignments": {"SELECT": ALL, "UPDATE": TRIALS},
    },
}
OF_COLUMNS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
OF_TABLES = ("DELETE", "TRUNCATE", "TRIGGER")
COLUMNS = {name: [c.name for c in table.columns] for name, table in Base.metadata.tables.items()}
COLUMNS["alembic_version"] = ["version_num"]


@dataclass
class Database:
    """A catalog whose owner is no superuser, and a role for each account of engines."""

    server: PostgresqlServer
    urls: dict[str, str]
    catalog: Catalog

    @property
    def engines(self) -> dict[str, str]:
        return {account: self.urls[account] for account in ACCOUNTS}

    def give(self, **others: str) -> None:
        give_engines_rights(self.catalog.engine, {**self.engines, **others})

    def ledger(self, engine: str) -> CatalogLedger:
        account = "ingest" if engine == INGEST else "query"
        return CatalogLedger(Catalog(self.urls[account]), engine)

    def tries(self, account: str, statement: str) -> None:
        """Let the role do it, and take it back."""
        engine = create_engine(self.urls[account])
        try:
            with engine.connect() as connection:
                connection.execute(text(statement))
        finally:
            engine.dispose()


@contextmanager
def made(postgresql: PostgresqlServer) -> Iterator[Database]:
    with postgresql.owned_database(*ACCOUNTS, "stranger") as urls:
        catalog = Catalog(urls["owner"], AUDIT_KEY)
        upgrade(catalog.engine)
        yield Database(postgresql, urls, catalog)
        catalog.close()


@pytest.fixture
def database(postgresql: PostgresqlServer) -> Iterator[Database]:
    with made(postgresql) as database:
        yield database


@pytest.fixture(scope="module")
def given(postgresql: PostgresqlServer) -> Iterator[Database]:
    """One whose engines have their rights, and which nobody changes."""
    with made(postgresql) as database:
        database.give()
        yield database


def rights(database: Database, account: str) -> set[tuple[str, str, str]]:
    """(table, right, column) of all that PostgreSQL lets the role do."""
    engine = create_engine(database.urls[account])
    columns = [(table, name) for table, names in COLUMNS.items() for name in names]
    found = set()
    with engine.connect() as connection:
        for (table, column), right in product(columns, OF_COLUMNS):
            asked = text("SELECT has_column_privilege(:table, :column, :right)")
            if connection.scalar(asked, {"table": table, "column": column, "right": right}):
                found.add((table, right, column))
        for table, right in product(COLUMNS, OF_TABLES):
            asked = text("SELECT has_table_privilege(:table, :right)")
            if connection.scalar(asked, {"table": table, "right": right}):
                found |= {(table, right, column) for column in COLUMNS[table]}
    engine.dispose()
    return found


def test_each_right_on_each_column_of_each_table_is_as_the_table_here_says(
    database: Database,
) -> None:
    assert all(rights(database, account) == set() for account in ACCOUNTS)
    for _ in range(2):
        database.give()
    for account in ACCOUNTS:
        wanted = {
            (table, right, column)
            for table, allowed in MAY[account].items()
            for right, columns in allowed.items()
            for column in (COLUMNS[table] if columns == ALL else columns.split())
        }
        assert rights(database, account) == wanted
    assert rights(database, "stranger") == set()


def test_an_engine_that_starts_before_secadmin_says_so(
    postgresql: PostgresqlServer, database: Database
) -> None:
    """It has tables without rights first, and then none at all."""
    with postgresql.owned_database(*ACCOUNTS) as urls:
        for url in (database.urls["query"], urls["query"]):
            with pytest.raises(Unavailable, match="SecAdmin makes them"):
                CatalogLedger(Catalog(url), FIRST).begin()


def test_what_a_version_before_gave_and_this_one_does_not_is_taken(database: Database) -> None:
    role = database.catalog.engine.dialect.identifier_preparer.quote(
        create_engine(database.urls["query"]).url.username or ""
    )
    with database.catalog.engine.begin() as connection:
        connection.execute(text(f"GRANT ALL ON users TO {role}"))
        connection.execute(text(f"GRANT SELECT (text) ON queries TO {role}"))
    database.give()
    left = {table for table, _, _ in rights(database, "query")}
    assert left == MAY["query"].keys()
    assert ("queries", "SELECT", "text") not in rights(database, "query")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT password_hash FROM users",
        "SELECT token_hash FROM sessions",
        "SELECT text FROM queries",
        "SELECT name FROM objects",
        "INSERT INTO grants (id, role_id, permission, object_id) VALUES (1, 1, 'SEND', 1)",
        "INSERT INTO access_topics (access_id, topic, leaving) VALUES (1, 'out.o.c', false)",
        "UPDATE delivery_classes SET clearance = '-1'",
        "UPDATE outputs SET plan = '{}'",
        "UPDATE withdrawals SET done_at = now()",
        "UPDATE categories SET bit = 7",
        "DELETE FROM audit",
        "TRUNCATE run_statuses",
        "CREATE TABLE mine (id int)",
        "ALTER TABLE heartbeats ADD COLUMN mine int",
    ],
)
@pytest.mark.parametrize("account", ACCOUNTS)
def test_nothing_else_can_be_done(given: Database, account: str, statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
        given.tries(account, statement)


def test_not_even_with_the_audit_key_an_engine_changes_what_is_audited(given: Database) -> None:
    for account in ACCOUNTS:
        catalog = Catalog(given.urls[account], AUDIT_KEY)
        with pytest.raises(ProgrammingError, match="permission denied"):
            catalog.record("joe", "x", "y", "allowed")
        catalog.close()


def test_ingest_does_all_of_its_work(database: Database) -> None:
    filled = Filled(World(database.catalog))
    stream = filled.stream("in1", 1, 0).object_id
    leaving = filled.sender("in1", state=SenderState.DRAINING)
    database.give()
    ledger = Used(database.ledger(INGEST))
    ledger.note_death()
    ledger.begin()
    ledger.serve()
    (run,) = ledger.runs()
    assert isinstance(run, IngestRun) and len(run.streams[0].senders) == 2
    ledger.report(RunReport(run.name, "starting"))
    ledger.report(RunReport(run.name, "running", counted={"late": 1}))
    for faults in ({"in.a": "it is gone"}, {"in.a": "it is short", "in.b": "x"}, {"in.b": "x"}):
        ledger.faults(faults)
    assert ledger.draining() == {leaving.id} == ledger.still_read([leaving.id])
    assert leaving.id in ledger.unfinished([stream])[stream]
    ledger.drained([leaving.id])
    assert leaving.id not in ledger.unfinished([stream])[stream]
    ledger.applied()
    ledger.beat()
    ledger.end()
    of_others = {"awaits_trial", "trial_starts", "past_runs"}
    assert ledger.unused() == of_others, "which engines of queries ask alone"
    with database.catalog.read() as session:
        assert session.get_one(SenderRow, leaving.id).state == SenderState.GONE
        assert [row.topic for row in session.query(TopicFault)] == ["in.b"]
        assert session.get_one(RunStatus, run.name).counts == {"late": 1}


def test_query_engines_do_all_of_their_work(database: Database) -> None:
    filled = Filled(World(database.catalog))
    ids = [
        filled.output(name, Source(filled.stream(f"in-{name}", 1, bit)), f"in-{name}").object_id
        for bit, name in enumerate("abc")
    ]
    filled.delivery("a", "c1", "1")
    with database.catalog.bookkeeping() as session:
        assign(session, dict.fromkeys(ids, 1), [FIRST], Limits())
    database.give()
    home = Used(database.ledger(FIRST))
    home.begin()
    home.serve()
    first = [run for run in home.runs() if isinstance(run, QueryRun)]
    assert len(first) == 3 and first[0].classes
    work(home)
    home.note_death()
    assert home.trial_starts()
    home.begin()
    work(home)
    # The group is halved, the first half proven, and the last one parked.
    tries = Used(database.ledger(PROBATION))
    for group, dies in TRIED:
        tries.begin()
        tries.serve()
        work(tries)
        assert len(tries.runs()) == group
        if dies:
            tries.note_death()
            continue
        with database.catalog.bookkeeping() as session:
            heartbeat_of(session, PROBATION).beats += PROVEN_BEATS
        work(tries)
    assert not tries.awaits_trial()
    work(home)
    assert len(home.runs()) == 2
    home.faults({"lab.a": "it is gone"})
    home.faults({})
    filled.world.edit(Object, ids[0], removed_at=START)
    assert home.past_runs([query_run_name(each) for each in ids]) == {query_run_name(ids[0]): ()}
    home.end()
    of_ingest = {"draining", "drained", "still_read", "unfinished"}
    assert home.unused() == {*of_ingest, "awaits_trial"}
    with database.catalog.read() as session:
        assert len(parked(session)) == 1


# How many run together in each trial, and whether their engine dies.
TRIED = [(3, True), (2, True), (1, False), (1, False), (1, True), (1, True), (1, True)]


class Used:
    """A ledger that notes which of its methods were called."""

    def __init__(self, ledger: CatalogLedger) -> None:
        self._ledger = ledger
        self._called: set[str] = set()

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        self._called.add(name)
        return getattr(self._ledger, name)

    def unused(self) -> set[str]:
        methods = inspect.getmembers(CatalogLedger, inspect.isfunction)
        return {name for name, _ in methods if not name.startswith("_")} - self._called


def work(ledger: Used) -> None:
    """Run what is wanted for some beats, and end what is not."""
    running = set[str]()
    for _ in range(3):
        ledger.beat()
        wanted = {run.name for run in ledger.runs()}
        for name in wanted | running:
            ledger.report(RunReport(name, "running" if name in wanted else "stopped"))
        running = wanted
        ledger.applied()


def test_unfit_roles_are_refused(database: Database) -> None:
    unknown = database.urls["query"].replace("query_", "nobody_")
    with pytest.raises(InvalidInput, match="the database has no role 'nobody_"):
        database.give(query=unknown)
    for twice in ("owner", "ingest"):
        with pytest.raises(InvalidInput, match="a database role each"):
            database.give(query=database.urls[twice])
    for url in ("postgresql://host/catalog", "nonsense"):
        with pytest.raises(InvalidInput, match="postgresql://role@host/database"):
            database.give(query=url)
    database.server.grant("SUPERUSER", database.urls["query"])
    with pytest.raises(InvalidInput, match=r"may use the table .* superuser"):
        database.give()
    assert rights(database, "ingest") == set(), "all or nothing"


def test_a_file_has_no_roles(catalog: Catalog) -> None:
    give_engines_rights(catalog.engine, {})
    if catalog.engine.dialect.name == "sqlite":
        with pytest.raises(InvalidInput, match="PostgreSQL"):
            give_engines_rights(catalog.engine, {"ingest": "postgresql://i@h/c"})
