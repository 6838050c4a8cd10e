"""Transactions: a change with its audit entries or nothing, all in one serial history."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import TextClause, event, func, make_url, select, text, update
from sqlalchemy.exc import DBAPIError

from catalog import audit
from catalog.audit import Outcome
from catalog.decision import Decision
from catalog.errors import Conflict, InvalidInput, Unavailable
from catalog.models import AuditEntry, Grant, Role
from catalog.permission import Permission
from catalog.store import Catalog, bump_generation
from catalog.wanted import generation
from tests.audit_key import AUDIT_KEY
from tests.postgresql import PostgresqlServer


def entries(catalog: Catalog) -> list[AuditEntry]:
    with catalog.read() as session:
        return list(session.scalars(select(AuditEntry).order_by(AuditEntry.seq)))


def _count(catalog: Catalog, query: TextClause) -> int:
    with catalog.read() as session:
        found: int = session.execute(query).scalar_one()
    return found


def roles(catalog: Catalog) -> list[str]:
    with catalog.read() as session:
        return list(session.scalars(select(Role.name).order_by(Role.name)))


def test_a_change_and_its_entries_are_committed_together(catalog: Catalog) -> None:
    with catalog.change("joe") as change:
        change.session.add(Role(name="A"))
        change.audit("add role", "role A", detail={"why": "asked"})
        decision = Decision(True, Permission.CHANGE_PERM, "system", "role ADMIN holds it", "ADMIN")
        change.audit_decision("add role", decision)
    first, second = entries(catalog)
    assert (first.seq, first.actor, first.action, first.object) == (1, "joe", "add role", "role A")
    assert (first.outcome, first.detail, first.at) == ("changed", {"why": "asked"}, change.now)
    assert (second.outcome, second.detail["via_role"]) == ("allowed", "ADMIN")
    assert roles(catalog) == ["A"]


def test_a_change_that_fails_leaves_nothing(catalog: Catalog) -> None:
    with pytest.raises(Conflict), catalog.change("joe") as change:
        change.session.add(Role(name="A"))
        change.audit("add role", "role A")
        raise Conflict("no")
    assert (roles(catalog), entries(catalog)) == ([], [])


def test_a_change_without_an_entry_is_an_error_and_leaves_nothing(catalog: Catalog) -> None:
    with (
        pytest.raises(RuntimeError, match="without an audit entry"),
        catalog.change("joe") as change,
    ):
        change.session.add(Role(name="A"))
    assert roles(catalog) == []


def test_a_denial_is_recorded_alone(catalog: Catalog) -> None:
    catalog.record("al", "read", "stream in1", Outcome.DENIED, "no active role holds it")
    (entry,) = entries(catalog)
    assert (entry.actor, entry.outcome, entry.detail) == ("al", "denied", {})


def test_reading_cannot_write(catalog: Catalog) -> None:
    with pytest.raises(DBAPIError), catalog.read() as session:
        session.add(Role(name="A"))
        session.flush()
    assert roles(catalog) == []


def test_a_reader_sees_one_state_and_does_not_wait(catalog: Catalog) -> None:
    with catalog.read() as session:
        assert session.scalar(select(func.count()).select_from(Role)) == 0
        with catalog.change("joe") as change:
            change.session.add(Role(name="A"))
            change.audit("add role", "role A")
        assert session.scalar(select(func.count()).select_from(Role)) == 0
    assert roles(catalog) == ["A"]


def test_references_are_kept(catalog: Catalog) -> None:
    with pytest.raises(DBAPIError), catalog.change("joe") as change:
        change.session.add(Grant(role_id=999, permission="SEND", object_id=999))
        change.audit("grant", "nothing")
    assert entries(catalog) == []


def test_the_generation_counts_changes(catalog: Catalog) -> None:
    for expected in (1, 2):
        with catalog.change("joe") as change:
            change.bump_generation()
            change.audit("start", "query q1")
        with catalog.read() as session:
            assert generation(session) == expected


def test_racing_changes_are_one_serial_chain(catalog_url: str) -> None:
    services = [Catalog(catalog_url, AUDIT_KEY), Catalog(catalog_url, AUDIT_KEY)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(15):
                with services[number % 2].change(f"service {number}") as change:
                    count = change.session.scalar(select(func.count()).select_from(Role)) or 0
                    change.session.add(Role(name=f"R{count:03}"))
                    change.audit("add role", f"role R{count:03}", detail={"step": step})
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    # Each counted what all before it had made: no two saw the same state.
    assert roles(services[0]) == [f"R{number:03}" for number in range(60)]
    assert [entry.object for entry in entries(services[0])] == [
        f"role R{number:03}" for number in range(60)
    ]
    with services[0].read() as session:
        assert audit.verify(session, AUDIT_KEY) == audit.AuditReport(60)
    for service in services:
        service.close()


def test_two_that_write_the_same_rows_do_not_wait_for_each_other(catalog_url: str) -> None:
    """A change and the bookkeeping of another service, which come to the rows in other orders."""
    services = [Catalog(catalog_url, AUDIT_KEY), Catalog(catalog_url, AUDIT_KEY)]
    with services[0].change("joe") as change:
        change.session.add(Role(name="A"))
        change.audit("add role", "role A")
    has_first, has_second = threading.Event(), threading.Event()
    rename = update(Role).values(name=Role.name + "!")

    def bookkeeping() -> None:
        with services[0].bookkeeping() as session:
            bump_generation(session)
            has_first.set()
            has_second.wait(0.5)
            session.execute(rename)

    def changing() -> None:
        assert has_first.wait(30)
        with services[1].change("al") as change:
            change.session.execute(rename)
            has_second.set()
            change.bump_generation()
            change.audit("rename", "role A")

    with ThreadPoolExecutor(2) as pool:
        for running in [pool.submit(bookkeeping), pool.submit(changing)]:
            running.result(60)
    assert roles(services[0]) == ["A!!"]
    for service in services:
        service.close()


def test_a_lock_that_is_not_had_in_time_is_unavailable(catalog_url: str) -> None:
    holder, other = (
        Catalog(catalog_url, AUDIT_KEY),
        Catalog(catalog_url, AUDIT_KEY, lock_timeout_ms=200),
    )
    with holder.change("joe") as change:
        change.audit("slow", "system")
        start = time.monotonic()
        with pytest.raises(Unavailable), other.change("al"):
            pytest.fail("two changes at once")
        assert 0.1 < time.monotonic() - start < 9, "it waited for the default's 10 s"
    other.record("al", "later", "system", Outcome.ALLOWED)
    assert [entry.action for entry in entries(holder)] == ["slow", "later"]
    holder.close()
    other.close()


def test_a_transaction_that_stood_idle_too_long_is_unavailable(
    postgresql: PostgresqlServer,
) -> None:
    alive = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    with postgresql.database(migrated=True) as url:
        catalog = Catalog(url, AUDIT_KEY)
        with pytest.raises(Unavailable), catalog.bookkeeping() as session:
            pid = session.scalar(text("SELECT pg_backend_pid()"))
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 1"))
            deadline = time.monotonic() + 30
            while _count(catalog, alive.bindparams(pid=pid)):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            session.scalar(select(Role.id))
        catalog.close()


def test_a_database_that_has_become_a_standby_is_unavailable(postgresql: PostgresqlServer) -> None:
    with postgresql.database(migrated=True) as url:
        catalog = Catalog(url, AUDIT_KEY)
        with pytest.raises(Unavailable), catalog.bookkeeping() as session:
            session.execute(text("SET TRANSACTION READ ONLY"))
            session.execute(text("DELETE FROM audit"))
        # Of several hosts, what is connected to is one that can be written.
        name = make_url(url).database
        with catalog.bookkeeping() as session:
            session.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
        catalog.close()
        with pytest.raises(Unavailable), catalog.read() as session:
            session.scalar(select(Role.id))
        catalog.close()


def test_errors_tell_no_values(catalog: Catalog) -> None:
    """They are logged, and among the values are hashes of passwords and tokens."""
    with pytest.raises(DBAPIError) as caught, catalog.bookkeeping() as session:
        session.execute(text("INSERT INTO nowhere VALUES (:hash)"), {"hash": "0a1b2c"})
    assert "0a1b2c" not in str(caught.value)


def test_a_database_without_tables_is_not_initialised(empty_url: str) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    with pytest.raises(DBAPIError), catalog.change("joe"):
        pytest.fail("no tables")
    catalog.close()


def test_a_catalog_without_a_head_takes_no_change(catalog: Catalog) -> None:
    with catalog.bookkeeping() as session:
        session.execute(text("DELETE FROM audit_head"))
    with pytest.raises(Unavailable, match="not initialised"):
        catalog.record("joe", "x", "system", Outcome.ALLOWED)


def test_a_lost_server_is_unavailable() -> None:
    catalog = Catalog("postgresql://nobody@127.0.0.1:9/none", AUDIT_KEY)
    with pytest.raises(Unavailable), catalog.read() as session:
        session.scalar(select(Role.id))


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://x@y/z", "postgres"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="URL"):
        Catalog(url, AUDIT_KEY)


def test_a_damaged_file_is_unavailable(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    file.write_bytes(b"not a database, but long enough to be read as one " * 100)
    with pytest.raises(Unavailable):
        Catalog(f"sqlite:///{file}", AUDIT_KEY)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        Catalog(f"sqlite:///{tmp_path}/absent/catalog.db", AUDIT_KEY)


@pytest.mark.parametrize("mode", [None, 0o644, 0o666])
def test_the_files_are_private_while_open(tmp_path: Path, mode: int | None) -> None:
    file = tmp_path / "catalog.db"
    if mode is not None:
        file.touch()
        file.chmod(mode)
    catalog = Catalog(f"sqlite:///{file}", AUDIT_KEY)
    with catalog.bookkeeping() as session:
        session.execute(text("CREATE TABLE x (y INTEGER)"))
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"catalog.db": 0o600, "catalog.db-wal": 0o600, "catalog.db-shm": 0o600}
    catalog.close()


def test_sqlite_settings(tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    with catalog.read() as session:
        settings = {
            name: session.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "foreign_keys", "synchronous", "query_only")
        }
    assert settings == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2, "query_only": 1}
    catalog.close()


def test_opening_waits_for_another_that_opens(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE x (y INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable):
            Catalog(url, AUDIT_KEY, lock_timeout_ms=50)
        with ThreadPoolExecutor() as pool:
            opening = pool.submit(Catalog, url)
            assert not wait([opening], timeout=0.2).done
            other.execute("ROLLBACK")
            opening.result(10).close()


def test_no_directory_is_taken_for_a_database(tmp_path: Path) -> None:
    before = tmp_path.stat().st_mode
    with pytest.raises(InvalidInput, match="cannot open the catalog"):
        Catalog(f"sqlite:///{tmp_path}", AUDIT_KEY)
    assert tmp_path.stat().st_mode == before


def test_an_sqlite_change_takes_the_lock_before_it_reads(tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", AUDIT_KEY)
    seen: list[str] = []
    event.listen(catalog.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    with catalog.bookkeeping() as session:
        session.scalar(text("SELECT 1"))
        with (
            sqlite3.connect(tmp_path / "catalog.db", timeout=0) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
    assert seen[1] == "BEGIN IMMEDIATE"
    catalog.close()


def test_a_text_with_nul_is_refused_by_every_database(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match="NUL"), catalog.read() as session:
        session.scalar(select(Role).where(Role.name == "A\0"))
    with pytest.raises(InvalidInput, match="NUL"), catalog.change("joe") as change:
        change.session.add_all([Role(name="A"), Role(name="B\0")])
        change.audit("add role", "role A")
    assert (roles(catalog), entries(catalog)) == ([], [])
