"""Queries with their outputs and executions, and the policies that restrict what they see."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from catalog.models.base import Base, Key
from catalog.models.people import Role
from catalog.placement import Placement


class QueryRow(Base):
    """A query as it was added. `running` says whether its users want it to run.

    `stopped_because` is the reason if the platform stopped it, and empty if a user stopped it.
    `roles` were active when it was added. A `narrowed` query is for some of them, or juniors: it
    sees its streams as these `as_roles` do, and its results come by no other role.

    Since `views_changed_at` its plan is not what policies show its roles, or what it reads is
    computed from such a plan. It does not run before it is merged anew.
    """

    __tablename__ = "queries"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    language: Mapped[str] = mapped_column(String(16))
    text: Mapped[str]
    running: Mapped[bool] = mapped_column(default=True)
    stopped_because: Mapped[str] = mapped_column(String(200), default="")
    narrowed: Mapped[bool] = mapped_column(default=False)
    views_changed_at: Mapped[datetime | None]
    roles: Mapped[list[Role]] = relationship(secondary="query_roles")
    as_roles: Mapped[list[Role]] = relationship(secondary="query_as_roles")


class QueryRole(Base):
    """A role that was active when the query was added."""

    __tablename__ = "query_roles"
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.object_id"), primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)


class QueryAsRole(Base):
    """A role for which the query was added (000 §4.1)."""

    __tablename__ = "query_as_roles"
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.object_id"), primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)


class PolicyRow(Base):
    """A policy: what a role sees of a stream. `view` is an encoded `RoleView`.

    `xacml` is the text that it was read from, and empty if it was given in another way.
    """

    __tablename__ = "policies"
    __table_args__ = (UniqueConstraint("stream_id", "name"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"))
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    view: Mapped[dict[str, Any]]
    xacml: Mapped[str] = mapped_column(default="")


class OutputView(Base):
    """The view through which an output's plan reads a stream. Without a row it reads all of it."""

    __tablename__ = "output_views"
    output_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    stream_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    view: Mapped[dict[str, Any]]


class ExecutionRow(Base):
    """An execution: one thing that runs. It computes the outputs of equal queries.

    Equal queries have the same `key` (`catalog.canonical`); an empty key is shared by nobody. The
    encoded `plan` is that of its first output, and stays when this output is removed.
    `starting_offsets` is {topic: {partition: offset}} of the lab topics where it begins. `slots` is
    the number of the engine's tasks that its sources take (`catalog.admission`). If `begins_at` is
    set, it has not run yet: its offsets are those of that time, and the next start looks them up.

    If `whole_ms` is set, it keeps state that others may share (`catalog.moves`): results with a
    later event time (ms since 1970) depend on no tuple from before it began. It began with a copy
    of the state of the execution `copy_of`, if that is set.

    No row is ever deleted, so its id is never used again.
    """

    __tablename__ = "executions"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), index=True)
    plan: Mapped[dict[str, Any]]
    starting_offsets: Mapped[dict[str, Any]]
    slots: Mapped[int]
    begins_at: Mapped[datetime | None]
    whole_ms: Mapped[int | None]
    copy_of: Mapped[int | None] = mapped_column(index=True)


class OutputRow(Base):
    """An output of a query, and the execution that computes it. `relation` and `plan` are encoded.

    `starting_offsets` is {topic: {partition: offset}} of the lab topics when the query was added.
    `weak` says whether delivery has weak semantics. `retention_ms` is that of the delivery topics.
    `level` is the label of the level at which its query runs, in wire form, or None. `placement`
    says where the fan-out is (`catalog.placement`). It never changes.

    It gets no result with an event time up to `after_ms` any more, if that is set. If `moves_to` is
    set, it moves to that execution, which computes it behind the event time `turn_ms`. If it also
    `turns`, its own execution computes it only up to there (`catalog.moves`).
    """

    __tablename__ = "outputs"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    query_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)
    relation: Mapped[dict[str, Any]]
    plan: Mapped[dict[str, Any]]
    starting_offsets: Mapped[dict[str, Any]]
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"), index=True)
    level: Mapped[str | None]
    weak: Mapped[bool] = mapped_column(default=False)
    retention_ms: Mapped[int]
    placement: Mapped[str] = mapped_column(String(16), default=Placement.SINK.value)
    after_ms: Mapped[int | None]
    moves_to: Mapped[int | None] = mapped_column(ForeignKey("executions.id"), index=True)
    turn_ms: Mapped[int | None]
    turns: Mapped[bool] = mapped_column(default=False)


class OutputInput(Base):
    """A relation (a stream or another output) that the output's plan reads."""

    __tablename__ = "output_inputs"
    output_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    relation_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True, index=True)
