"""Delivery classes, accesses to their topics, and what Kafka does not know of them yet."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from catalog.models.base import Base, Key, of_those
from catalog.models.people import Role, User


class DeliveryClass(Base):
    """A delivery class of an output. The rule for its topic never changes. Its name is random.

    `clearance` is in the label's wire form, and so is `beyond`: a difference class takes nothing
    that this one covers. A whole class has None. `ways` has the clearances of single roles
    where only these count (`catalog.delivery`), or None. A class is fed from when its topic exists
    (`opened_at`); a closed one is never fed or opened again, and its topic is deleted since
    `removed_at`. It begins at `starting_offsets`, {topic: {partition: offset}} of the lab topics
    when its topic was made. If it runs in an engine of its level, it has an execution of its own
    there (`catalog.level_engines`).

    One that `backfills` has older results for one access alone (`catalog.backfills`). It has an
    execution of its own until that has ended.
    """

    __tablename__ = "delivery_classes"
    __table_args__ = (of_those("delivery_classes_not_removed", "removed_at", "output_id"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    output_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)
    name: Mapped[str] = mapped_column(String(32), unique=True)
    topic: Mapped[str] = mapped_column(String(160), unique=True)
    clearance: Mapped[str]
    beyond: Mapped[str | None]
    weak: Mapped[bool]
    ways: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    starting_offsets: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    execution_id: Mapped[int | None] = mapped_column(index=True)
    backfills: Mapped[bool] = mapped_column(default=False)
    opened_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]
    removed_at: Mapped[datetime | None]


class Access(Base):
    """A principal that a user got to read an output or a quarantine, or to send to a stream.

    `roles` are the roles that were active when it was made, and every change checks their rights
    again. Without a session it is a kept access: it outlives the session that made it (`--keep`).
    `level` is the level of the session that made it. `topics` are the topics that it may reach now.
    An access that has ended has none. After it has ended and its withdrawals are done, its
    principal is deleted in Kafka (`retired_at`).
    """

    __tablename__ = "accesses"
    __table_args__ = (of_those("accesses_not_retired", "retired_at", "ended_at"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))  # an `AccessKind`
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id"), index=True)
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)
    principal: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    level: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    user: Mapped[User] = relationship()
    roles: Mapped[list[Role]] = relationship(secondary="access_roles")
    topics: Mapped[list[AccessTopic]] = relationship(cascade="all, delete-orphan")


class AccessTopic(Base):
    """A topic that an access may reach now. The topic of a subscription has a class.

    Kafka lets the access in since `allowed_at`. The topic is fed since `fed_at`. The access reaches
    a `leaving` topic only until all its other topics are fed. They then replace it.
    """

    __tablename__ = "access_topics"
    __table_args__ = (
        of_those("access_topics_not_allowed", "allowed_at", "topic"),
        of_those("access_topics_not_fed", "fed_at", "class_id"),
    )
    access_id: Mapped[int] = mapped_column(ForeignKey("accesses.id"), primary_key=True)
    topic: Mapped[str] = mapped_column(String(160), primary_key=True, index=True)
    class_id: Mapped[int | None] = mapped_column(ForeignKey("delivery_classes.id"), index=True)
    leaving: Mapped[bool] = mapped_column(default=False)
    allowed_at: Mapped[datetime | None]
    fed_at: Mapped[datetime | None]
    delivery_class: Mapped[DeliveryClass | None] = relationship()


class AccessRole(Base):
    """A role that was active when the access was made."""

    __tablename__ = "access_roles"
    access_id: Mapped[int] = mapped_column(ForeignKey("accesses.id"), primary_key=True)
    role_id: Mapped[int] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)


class Withdrawal(Base):
    """The intent to take a topic from a principal. The transaction that decides it writes it.

    It is done after the ACL is deleted and, for reading, the fence is proven. When the service
    starts, it first does all withdrawals that are not done. While the fence is `unproven`, nothing
    is written to the topic.
    """

    __tablename__ = "withdrawals"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    principal: Mapped[str] = mapped_column(String(64), index=True)
    topic: Mapped[str] = mapped_column(String(160), index=True)
    decided_at: Mapped[datetime]
    done_at: Mapped[datetime | None] = mapped_column(index=True)
    unproven: Mapped[bool] = mapped_column(default=False)


class UnansweredGrant(Base):
    """That Kafka was asked to let a principal reach a topic, and has not answered (yet).

    It is written before Kafka is asked, and deleted with the answer. If there is none, it is
    `lost`: Kafka may carry it out whenever it likes. So when the topic is taken from the principal,
    the principal gets a ban (`banned_at`): Kafka denies it the topic for good.
    """

    __tablename__ = "unanswered_grants"
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    request: Mapped[str] = mapped_column(String(32), index=True)
    principal: Mapped[str] = mapped_column(String(64), index=True)
    topic: Mapped[str] = mapped_column(String(160), index=True)
    asked_at: Mapped[datetime]
    lost: Mapped[bool] = mapped_column(default=False)
    banned_at: Mapped[datetime | None]


class Refill(Base):
    """What a delivery class lacks: results in the topic `source` that its subscribers had not read.

    The transaction that cuts the topic from a subscription and opens the class for it writes the
    refill. SecAdmin copies the results, and deletes the refill when the run has fed the class for a
    while (`secadmin.control.refills`).
    """

    __tablename__ = "refills"
    class_id: Mapped[int] = mapped_column(ForeignKey("delivery_classes.id"), primary_key=True)
    source: Mapped[str] = mapped_column(String(160), primary_key=True, index=True)
    decided_at: Mapped[datetime]


class Backfill(Base):
    """The backfill of a delivery class, which began at what came `since` then.

    If `after_ms` is set, it gives results with later event times alone. Its run is to deliver all
    that came before the `ends`, {topic: {partition: offset}} of the lab topics, which are looked up
    at `ends_at`. It has `ended_at` some time, and is `complete` if the run has delivered all.
    """

    __tablename__ = "backfills"
    class_id: Mapped[int] = mapped_column(ForeignKey("delivery_classes.id"), primary_key=True)
    access_id: Mapped[int] = mapped_column(ForeignKey("accesses.id"), index=True)
    since: Mapped[datetime]
    after_ms: Mapped[int | None]
    ends_at: Mapped[datetime]
    ends: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    ended_at: Mapped[datetime | None]
    complete: Mapped[bool] = mapped_column(default=False)
