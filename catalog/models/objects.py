"""Objects, and what roles may do with them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import JSON, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from catalog.models.base import Base, Key
from catalog.models.people import User


class Object(Base):
    """SYSTEM, a schema, a stream, a query or an output.

    Names are unique in a `namespace`. Streams and outputs share one, because a query can name
    either. A removed object keeps its row, so its id is never reused, but nobody sees it. Its name
    is free only after its topics are deleted (`gone_at`). Otherwise a new object of that name would
    get the old tuples.
    """

    __tablename__ = "objects"
    __table_args__ = (
        Index(
            "one_live_object_a_name",
            "namespace",
            "name",
            unique=True,
            sqlite_where=text("gone_at IS NULL"),
            postgresql_where=text("gone_at IS NULL"),
        ),
    )
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    namespace: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(64))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
    gone_at: Mapped[datetime | None]
    owner: Mapped[User | None] = relationship()


class Grant(Base):
    """The role holds the permission on the object."""

    __tablename__ = "grants"
    __table_args__ = (UniqueConstraint("role_id", "permission", "object_id"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"))
    permission: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)


class OperatorLimitsRow(Base):
    """What a role with ADD QUERY allows in queries (`catalog.operator_limits`). NULL: no limit."""

    __tablename__ = "operator_limits"
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True)
    operators: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    window_ms: Mapped[int | None]
    slide_ms: Mapped[int | None]
    windows: Mapped[int | None]
    window_rows: Mapped[int | None]
