"""Filling a catalog by names, for tests: users, roles, objects, grants, sessions, accesses."""

import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import select

from catalog import models
from catalog.authorizer import Authorizer
from catalog.models import (
    Access,
    Base,
    CategoryRow,
    Grant,
    Membership,
    Object,
    Role,
    Seniority,
    User,
)
from catalog.namespace import namespace_of
from catalog.permission import ObjectKind
from catalog.store import Catalog
from catalog.subject import Subject, subject_of_session

T = TypeVar("T")
Named = TypeVar("Named", User, Role)
START = datetime(2026, 1, 31, 12, 0, 0)  # noqa: DTZ001 - the catalog's times have no zone


class SettableClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


class World:
    """A catalog with the SYSTEM object; objects are named "stream in1", roles and users by name."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.object("system system")

    def add(self, row: Base) -> Any:
        with self.catalog.change("test") as change:
            change.session.add(row)
            change.session.flush()
            change.audit("add", "test")
        return row

    def user(self, name: str, *roles: str, password_hash: str = "", **values: Any) -> User:
        made = User(name=name, password_hash=password_hash, created_at=START, **values)
        user: User = self.add(made)
        for role in roles:
            self.member(name, role)
        return user

    def role(self, name: str, juniors: Iterable[str] = ()) -> Role:
        known = self.find(Role, name)
        role: Role = known if known is not None else self.add(Role(name=name))
        for junior in juniors:
            self.add(Seniority(senior_id=role.id, junior_id=self.role(junior).id))
        return role

    def member(self, user: str, role: str) -> None:
        self.add(Membership(user_id=self.get(User, user).id, role_id=self.role(role).id))

    def object(self, what: str, owner: str | None = None, **values: Any) -> Object:
        kind, name = what.split(" ", 1)
        row = Object(
            kind=kind,
            namespace=namespace_of(ObjectKind(kind)),
            name=name,
            owner_id=self.get(User, owner).id if owner else None,
            created_at=START,
            **values,
        )
        made: Object = self.add(row)
        return made

    def stream(self, name: str, *bits: int, owner: str | None = None) -> Object:
        """A stream with a source category and, as a second bit, an aggregated one."""
        stream = self.object(f"stream {name}", owner)
        for bit, kind in zip(bits, ("source", "aggregated"), strict=False):
            self.add(CategoryRow(bit=bit, kind=kind, stream_id=stream.id))
        return stream

    def grant(self, role: str, permission: str, what: str) -> None:
        target = self.get_object(what)
        row = Grant(role_id=self.role(role).id, permission=permission, object_id=target.id)
        self.add(row)

    def session(self, user: str, *roles: str) -> models.Session:
        row = models.Session(
            user_id=self.get(User, user).id,
            token_hash=uuid.uuid4().hex,
            created_at=START,
            expires_at=START + timedelta(hours=8),
        )
        login: models.Session = self.add(row)
        for role in roles:
            self.add(models.SessionRole(session_id=login.id, role_id=self.role(role).id))
        return login

    def access(self, user: str, what: str, *roles: str, session_id: int | None = None) -> Access:
        row = Access(
            kind="output",
            user_id=self.get(User, user).id,
            session_id=session_id,
            object_id=self.get_object(what).id,
            principal=f"p-{user}-{'-'.join(roles)}-{session_id}",
            created_at=START,
        )
        access: Access = self.add(row)
        for role in roles:
            self.add(models.AccessRole(access_id=access.id, role_id=self.role(role).id))
        return access

    def find(self, table: type[Named], name: str) -> Named | None:
        with self.catalog.read() as session:
            return session.query(table).filter_by(name=name).one_or_none()

    def get(self, table: type[Named], name: str) -> Named:
        found = self.find(table, name)
        assert found is not None, name
        return found

    def get_role(self, name: str) -> int:
        return self.get(Role, name).id

    def get_object(self, what: str) -> Object:
        kind, name = what.split(" ", 1)
        with self.catalog.read() as session:
            query = select(Object).where(Object.kind == kind, Object.name == name)
            return session.scalars(query.order_by(Object.id.desc())).first() or self._missing(what)

    def _missing(self, what: str) -> Object:
        raise LookupError(what)

    def edit(self, table: type[T], key: Any, **values: Any) -> None:
        with self.catalog.change("test") as change:
            row = change.session.get(table, key)
            for name, value in values.items():
                setattr(row, name, value)
            change.audit("edit", "test")

    def ask(self, login: models.Session, question: Callable[[Authorizer, Subject], T]) -> T:
        """What an authorizer answers about the subject of that session."""
        with self.catalog.read() as session:
            row = session.get(models.Session, login.id)
            assert row is not None
            return question(Authorizer(session), subject_of_session(session, row))


def error_of(call: Callable[[], object]) -> tuple[type[Exception], str] | None:
    """Class and words of what the call raises, None where it raises nothing."""
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None
