"""Users, roles and their sessions."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from catalog.models.base import Base, Key, of_those


class User(Base):
    """A person that can log in."""

    __tablename__ = "users"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str] = mapped_column(String(100))
    must_change_password: Mapped[bool] = mapped_column(default=False)
    locked: Mapped[bool] = mapped_column(default=False)
    failed_logins: Mapped[int] = mapped_column(default=0)
    logins_stopped_until: Mapped[datetime | None]
    created_at: Mapped[datetime]


class Role(Base):
    """A job function. Permissions are granted only to roles."""

    __tablename__ = "roles"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)


class Seniority(Base):
    """The senior role holds everything that the junior role holds. The graph has no cycle."""

    __tablename__ = "seniorities"
    senior_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True)
    junior_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True)


class Membership(Base):
    """The user may activate the role."""

    __tablename__ = "memberships"
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)


class Session(Base):
    """A session. Only the SHA-256 of its token is kept. `active_roles` are the activated roles.

    `level` is its level, if it has one of its own: {id of a conflict class: part}
    (`catalog.session_levels`).
    """

    __tablename__ = "sessions"
    __table_args__ = (of_those("sessions_open", "ended_at", "id"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    ended_at: Mapped[datetime | None]
    level: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    user: Mapped[User] = relationship()
    active_roles: Mapped[list[Role]] = relationship(secondary="session_roles")


class SessionRole(Base):
    """A role that a session has activated."""

    __tablename__ = "session_roles"
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id"), primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)
