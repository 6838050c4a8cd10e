"""The first start makes the tables, the object SYSTEM, the role ADMIN and the user `admin`."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.audit import PLATFORM
from catalog.migrations import upgrade
from catalog.models import Grant, Membership, Object, Role, User
from catalog.namespace import SYSTEM_NAME, Namespace
from catalog.passwords import Passwords, one_time_password
from catalog.permission import APPLIES, ObjectKind
from catalog.private_file import write_private
from catalog.store import Catalog, Change

ADMIN_ROLE = "ADMIN"
ADMIN_USER = "admin"


def ensure_initialised(
    catalog: Catalog, first_password_file: Path, passwords: Passwords | None = None
) -> None:
    """Make everything that a new deployment starts with. Do nothing if it exists already.

    The one-time password of the user `admin` is written to `first_password_file` (mode 0600) before
    the user is committed. So no crash leaves an administrator whose password nobody knows. Several
    services may call it at once. Raises Unavailable if the database cannot be reached.
    """
    upgrade(catalog.engine)
    with catalog.read() as session:
        if _is_initialised(session):
            return
    password = one_time_password()
    password_hash = (passwords or Passwords()).hash(password)
    with catalog.change(PLATFORM) as change:
        # Another service may have made everything while this one computed the hash.
        if _is_initialised(change.session):
            change.audit("initialise", SYSTEM_NAME, reason="another service was first")
            return
        _initialise(change, password_hash)
        first_password_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(first_password_file, password + "\n", synced=True)


def _is_initialised(session: Session) -> bool:
    query = select(Object.id).where(Object.namespace == Namespace.SYSTEM)
    return session.scalar(query) is not None


def _initialise(change: Change, password_hash: str) -> None:
    """ADMIN is a role with grants on SYSTEM. It undergoes every check."""
    system = Object(
        kind=ObjectKind.SYSTEM,
        namespace=Namespace.SYSTEM,
        name=SYSTEM_NAME,
        created_at=change.now,
    )
    role = Role(name=ADMIN_ROLE)
    user = User(
        name=ADMIN_USER,
        password_hash=password_hash,
        must_change_password=True,
        created_at=change.now,
    )
    change.session.add_all([system, role, user])
    change.session.flush()
    change.session.add(Membership(user_id=user.id, role_id=role.id))
    permissions = sorted(APPLIES[ObjectKind.SYSTEM])
    change.session.add_all(
        Grant(role_id=role.id, permission=permission, object_id=system.id)
        for permission in permissions
    )
    detail = {"user": ADMIN_USER, "role": ADMIN_ROLE, "permissions": permissions}
    change.audit("initialise", SYSTEM_NAME, detail=detail)
