"""Categories, and where the labels of tuples come from."""

from __future__ import annotations

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from catalog.models.base import Base, Key


class CategoryRow(Base):
    """A category: one bit of every label. The row outlives its stream, so no bit is reused.

    That of a company, or of T, has the id of its conflict class in place of a stream's. That of a
    role has the role's id, or nothing after the role was removed: then nobody holds it.
    """

    __tablename__ = "categories"
    bit: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))  # a `catalog.category_kind.CategoryKind`
    stream_id: Mapped[int | None] = mapped_column(ForeignKey("objects.id"), index=True)
    role_id: Mapped[int | None] = mapped_column(ForeignKey("roles.id"), unique=True)


class ClauseRole(Base):
    """A role of a clause, both as categories: whoever holds the role's holds the clause's.

    A company is like a clause that two things give: the company itself, and T of its class.
    """

    __tablename__ = "clause_roles"
    clause_bit: Mapped[int] = mapped_column(ForeignKey("categories.bit"), primary_key=True)
    role_bit: Mapped[int] = mapped_column(ForeignKey("categories.bit"), primary_key=True)


class LabelText(Base):
    """A role expression as the tuples of a stream have it, and its clauses as a label's wire form.

    `user_id` is the sender that used it first, or None if it belongs to the stream's label rule.
    """

    __tablename__ = "label_texts"
    __table_args__ = (UniqueConstraint("stream_id", "text"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"))
    text: Mapped[str] = mapped_column(String(1000))
    clauses: Mapped[str]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))


class SenderPolicy(Base):
    """The role expression of all that a user sends to a stream whose label rule is by sender."""

    __tablename__ = "sender_policies"
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    text: Mapped[str] = mapped_column(String(1000))


class ConflictClassRow(Base):
    """A conflict class, with the category of T. It has the name of its object, for engines."""

    __tablename__ = "conflict_classes"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    trusted_bit: Mapped[int] = mapped_column(ForeignKey("categories.bit"))


class Company(Base):
    """A company of a conflict class. Its row outlives the class, so that its name can be told."""

    __tablename__ = "companies"
    __table_args__ = (UniqueConstraint("class_id", "name"),)
    bit: Mapped[int] = mapped_column(ForeignKey("categories.bit"), primary_key=True)
    class_id: Mapped[int] = mapped_column(ForeignKey("conflict_classes.object_id"))
    name: Mapped[str] = mapped_column(String(64))


class UserLevel(Base):
    """The level of a user in one conflict class. Without a row the user has none.

    `part` is a company's name, T or ⊥, or None for a user that has not chosen its company yet.
    `by_choice` says that the user chooses, by what it reads first.
    """

    __tablename__ = "user_levels"
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    class_id: Mapped[int] = mapped_column(
        ForeignKey("conflict_classes.object_id"), primary_key=True
    )
    part: Mapped[str | None] = mapped_column(String(64))
    by_choice: Mapped[bool]
