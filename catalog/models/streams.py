"""Schemas, streams and their senders."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from catalog.models.base import Base, Key


class SchemaRow(Base):
    """A schema's attributes, as `catalog.stored_form.to_stored` writes them."""

    __tablename__ = "schemas"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    definition: Mapped[dict[str, Any]]


class StreamRow(Base):
    """A stream with its encoded Relation, RecordFormat and rules, which never change.

    Without a label rule, its tuples carry the source category alone. If it is `shared`, all users
    write one topic. Otherwise each user has its own topic. If it is `floored`, all that a user
    sends has the user's floor (`catalog.floors`). Its declared `rate`, in tuples a second, can
    change. Without one it counts for the usual rate (`catalog.limits`).
    """

    __tablename__ = "streams"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    schema_id: Mapped[int] = mapped_column(ForeignKey("objects.id"))
    relation: Mapped[dict[str, Any]]
    record_format: Mapped[dict[str, Any]]
    label_rule: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    level_rule: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    max_ahead_ms: Mapped[int]
    max_bytes: Mapped[int]
    partitions: Mapped[int]
    shared: Mapped[bool]
    floored: Mapped[bool] = mapped_column(default=False)
    rate: Mapped[int | None]
    ingest_group: Mapped[int] = mapped_column(index=True)


class SenderRow(Base):
    """A user that may SEND to a stream, and its topic there (`catalog.sender_state`).

    `user_id` is None for the topic that all users of a shared stream write, and for the one through
    which the platform `readmits` parked records. The id is never reused, because the origins of
    tuples contain it. The topic exists from `opened_at` to `removed_at`.

    In a floored stream, `floor` is what ingest adds to the label of all that the user sends, in
    wire form. It is there since the user may send. What is known to be added is `stamped`. While
    that is None, the floor waits, and ingest does not read the topic. An administrator may have
    `lowered` the floor: then it does not rise any more.
    """

    __tablename__ = "senders"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    topic: Mapped[str] = mapped_column(String(160), unique=True)
    readmits: Mapped[bool] = mapped_column(default=False)
    state: Mapped[str] = mapped_column(String(16), index=True)
    opened_at: Mapped[datetime | None]
    removed_at: Mapped[datetime | None]
    floor: Mapped[str | None]
    stamped: Mapped[str | None]
    lowered: Mapped[bool] = mapped_column(default=False)


class FloorCategory(Base):
    """A category that floors bring into a stream. No row is ever deleted: tuples carry it.

    It is `applied` when all runs that read the stream know that its tuples can carry it.
    """

    __tablename__ = "floor_categories"
    stream_id: Mapped[int] = mapped_column(ForeignKey("streams.object_id"), primary_key=True)
    bit: Mapped[int] = mapped_column(ForeignKey("categories.bit"), primary_key=True)
    applied: Mapped[bool]


class IndependentSender(Base):
    """A user whose tuples count for the minimum of a stream's declared aggregate.

    `number` is its number among the independent senders of the stream, and no other user of the
    stream ever gets it: the state of queries has it. A user that does not count any more keeps it.
    """

    __tablename__ = "independent_senders"
    __table_args__ = (UniqueConstraint("stream_id", "number"),)
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), primary_key=True)
    number: Mapped[int]
    counts: Mapped[bool]
