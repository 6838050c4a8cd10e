"""Many users, roles and grants, put into the catalog by its own code.

Through the API a thousand users alone would take minutes of password hashing. All of them have one
password here, and `sessions` logs them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select

from catalog.models import Grant, Membership, Object, Role, Session, User
from catalog.namespace import Namespace
from catalog.passwords import Passwords
from catalog.permission import Permission
from catalog.sessions import new_token, token_hash
from catalog.store import Catalog, Change

ACTOR = "bench"
PASSWORD = "one of a thousand"


@dataclass(frozen=True, slots=True)
class Right:
    """A role's permission on the stream or output of that name, or on "system"."""

    role: str
    permission: Permission
    name: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """Fills one catalog; each method is one change, with its audit entry."""

    catalog: Catalog

    def add_roles(self, names: Sequence[str]) -> None:
        """Add roles."""
        with self.catalog.change(ACTOR) as change:
            change.session.add_all(Role(name=name) for name in names)
            change.audit("add roles", "crowd")

    def grant(self, rights: Iterable[Right]) -> None:
        """Grant all of these."""
        with self.catalog.change(ACTOR) as change:
            roles, objects = _roles(change), _objects(change)
            change.session.add_all(
                Grant(
                    role_id=roles[right.role].id,
                    permission=right.permission,
                    object_id=objects[right.name].id,
                )
                for right in rights
            )
            change.audit("grant", "crowd")

    def add_users(self, roles_of: Mapping[str, Sequence[str]]) -> None:
        """Add users (name -> the roles that they hold)."""
        password_hash = Passwords().hash(PASSWORD)
        with self.catalog.change(ACTOR) as change:
            roles = _roles(change)
            users = {
                name: User(name=name, password_hash=password_hash, created_at=change.now)
                for name in roles_of
            }
            change.session.add_all(users.values())
            change.session.flush()
            change.session.add_all(
                Membership(user_id=users[name].id, role_id=roles[role].id)
                for name, held in roles_of.items()
                for role in held
            )
            change.audit("add users", "crowd")

    def sessions(self, roles_of: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Open a session for each user, with these roles active: user -> token."""
        tokens = {name: new_token() for name in roles_of}
        with self.catalog.change(ACTOR) as change:
            roles = _roles(change)
            named = select(User).where(User.name.in_(tokens))
            change.session.add_all(
                Session(
                    user_id=user.id,
                    token_hash=token_hash(tokens[user.name]),
                    created_at=change.now,
                    expires_at=change.now + timedelta(hours=8),
                    active_roles=[roles[role] for role in roles_of[user.name]],
                )
                for user in change.session.scalars(named)
            )
            change.audit("log in", "crowd")
        return tokens


def _roles(change: Change) -> dict[str, Role]:
    return {role.name: role for role in change.session.scalars(select(Role))}


def _objects(change: Change) -> dict[str, Object]:
    """Streams, outputs and SYSTEM by name."""
    live = select(Object).where(
        Object.namespace.in_((Namespace.RELATION, Namespace.SYSTEM)), Object.removed_at.is_(None)
    )
    return {obj.name: obj for obj in change.session.scalars(live)}
