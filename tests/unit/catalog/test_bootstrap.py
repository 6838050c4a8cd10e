"""The first start: once, race-free, and with one way in."""

import threading
from pathlib import Path
from unittest import mock

import pytest
from sqlalchemy import func, select

from catalog import bootstrap
from catalog.audit import PLATFORM, verify
from catalog.authorizer import Authorizer
from catalog.bootstrap import ADMIN_ROLE, ADMIN_USER, ensure_initialised
from catalog.errors import Denied
from catalog.login import login
from catalog.models import AuditEntry, Grant, Object, Role, User
from catalog.names import check_role_name, check_user_name
from catalog.password_change import change_password
from catalog.passwords import Passwords
from catalog.permission import APPLIES, ObjectKind, Permission
from catalog.sessions import authenticate
from catalog.store import Catalog
from catalog.subject import subject_of_session
from tests.audit_key import AUDIT_KEY

NEW = "a new and better one"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the first password goes."""
    return tmp_path / "secrets" / "first-password"


def count(catalog: Catalog, table: type) -> int:
    with catalog.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def test_the_first_administrator_comes_in_once(
    empty_url: str, passwords: Passwords, file: Path
) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    ensure_initialised(catalog, file, passwords)
    assert file.stat().st_mode & 0o777 == 0o600
    first = file.read_text().strip()
    opened = login(catalog, passwords, ADMIN_USER, first)
    assert (opened.roles, opened.must_change_password) == ((ADMIN_ROLE,), True)
    with pytest.raises(Denied), catalog.read() as session:
        authenticate(session, opened.token, catalog.clock())
    change_password(catalog, passwords, opened.token, first, NEW)
    with catalog.read() as session:
        subject = subject_of_session(session, authenticate(session, opened.token, catalog.clock()))
        authorizer = Authorizer(session)
        system = authorizer.system()
        held = {p for p in Permission if authorizer.decide(subject, p, system).allowed}
        assert held == APPLIES[ObjectKind.SYSTEM] | {Permission.VIEW_OBJECT}
        assert [row.kind for row in authorizer.visible_objects(subject)] == ["system"]
        assert verify(session, AUDIT_KEY).intact
        entry = session.get(AuditEntry, 1)
        assert entry is not None
        assert (entry.actor, entry.action) == (PLATFORM, "initialise")
        assert first not in str(entry.detail)
    catalog.close()


def test_starting_again_changes_nothing(empty_url: str, passwords: Passwords, file: Path) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    ensure_initialised(catalog, file, passwords)
    first = file.read_text()
    file.unlink()
    ensure_initialised(catalog, file, passwords)
    assert not file.exists()
    login(catalog, passwords, ADMIN_USER, first.strip())
    assert count(catalog, AuditEntry) == 2
    catalog.close()


def test_several_services_starting_at_once(
    empty_url: str, passwords: Passwords, file: Path
) -> None:
    failures: list[BaseException] = []
    ready = threading.Barrier(4)

    def start() -> None:
        try:
            ready.wait(30)
            catalog = Catalog(empty_url, AUDIT_KEY)
            ensure_initialised(catalog, file, passwords)
            catalog.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    catalog = Catalog(empty_url, AUDIT_KEY)
    assert [count(catalog, table) for table in (User, Role, Object)] == [1, 1, 1]
    assert count(catalog, Grant) == len(APPLIES[ObjectKind.SYSTEM])
    login(catalog, passwords, ADMIN_USER, file.read_text().strip())
    catalog.close()


def test_without_the_password_file_there_is_no_administrator(
    empty_url: str, passwords: Passwords, file: Path
) -> None:
    catalog = Catalog(empty_url, AUDIT_KEY)
    with (
        mock.patch.object(bootstrap, "write_private", side_effect=OSError("disk full")),
        pytest.raises(OSError, match="disk full"),
    ):
        ensure_initialised(catalog, file, passwords)
    assert count(catalog, User) == 0
    ensure_initialised(catalog, file, passwords)
    login(catalog, passwords, ADMIN_USER, file.read_text().strip())
    catalog.close()


def test_the_first_names_are_usable_names() -> None:
    assert check_role_name(ADMIN_ROLE) == ADMIN_ROLE
    assert check_user_name(ADMIN_USER) == ADMIN_USER
    with pytest.raises(Exception, match="not a usable user name"):
        check_user_name(PLATFORM)
