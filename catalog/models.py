"""The catalog's tables. Every change to them goes through `catalog.store.Catalog.change`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from catalog.placement import Placement

# SQLite numbers rows by itself only for INTEGER keys.
Key = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables. Times are UTC; on every database they are stored without a zone."""

    type_annotation_map: ClassVar = {
        dict[str, Any]: JSON,
        datetime: DateTime(timezone=False),
        int: BigInteger,
    }


def _of_those(name: str, without: str, column: str) -> Index:
    """An index of the rows without a time in the column `without`, for frequent searches."""
    where = text(f"{without} IS NULL")
    return Index(name, column, sqlite_where=where, postgresql_where=where)


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
    __table_args__ = (_of_those("sessions_open", "ended_at", "id"),)
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


class SchemaRow(Base):
    """A schema's attributes, as `catalog.stored_form.to_stored` writes them."""

    __tablename__ = "schemas"
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), primary_key=True)
    definition: Mapped[dict[str, Any]]


class StreamRow(Base):
    """A stream with its encoded Relation, RecordFormat and rules, which never change.

    Without a label rule, its tuples carry the source category alone. If it is `shared`, all users
    write one topic. Otherwise each user has its own topic. If it is `floored`, all that a user
    sends has the user's floor (`catalog.floors`).
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
    ingest_group: Mapped[int] = mapped_column(index=True)


class SenderRow(Base):
    """A user that may SEND to a stream, and its topic there (`catalog.sender_state`).

    `user_id` is None for the topic that all users of a shared stream write, and for the one through
    which the platform `readmits` parked records. The id is never reused, because the origins of
    tuples contain it. The topic exists from `opened_at` to `removed_at`.

    In a floored stream, `floor` is what ingest adds to the label of all that the user sends, in
    wire form. Ingest does not read the topic before there is one. What is known to be added is
    `stamped`. An administrator may have `lowered` it: then it does not rise any more.
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
    says where the fan-out stands (`catalog.placement`). It never changes.

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


class DeliveryClass(Base):
    """A delivery class of an output. The rule for its topic never changes. Its name is random.

    `clearance` is in the label's wire form, and so is `beyond`: a difference class takes nothing
    that this one covers. A whole class has None. `ways` has the clearances of single roles
    where only these count (`catalog.delivery`), or None. A class is fed from when its topic exists
    (`opened_at`); a closed one is never fed or opened again, and its topic is deleted since
    `removed_at`. One that runs apart (`Placement.APART`) begins at `starting_offsets`, {topic:
    {partition: offset}} of the lab topics when its topic was made. If it runs in an engine of its
    level, it has an execution of its own there (`catalog.level_engines`).

    One that `backfills` has older results for one access alone (`catalog.backfills`). It has an
    execution of its own until that has ended.
    """

    __tablename__ = "delivery_classes"
    __table_args__ = (_of_those("delivery_classes_not_removed", "removed_at", "output_id"),)
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
    __table_args__ = (_of_those("accesses_not_retired", "retired_at", "ended_at"),)
    id: Mapped[int] = mapped_column(Key, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))  # "output", "quarantine" or "send"
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
        _of_those("access_topics_not_allowed", "allowed_at", "topic"),
        _of_those("access_topics_not_fed", "fed_at", "class_id"),
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
    principal: Mapped[str] = mapped_column(String(64))
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


class Lease(Base):
    """A lock across processes that ends by itself when its holder is dead.

    `expires_at` is by the holder's clock, for people who read the table. Nothing depends on it.
    """

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime]


class RunStatus(Base):
    """An engine's report on a run: its state, and a message that never holds data.

    `since` is the time when this state began. None of its `topics` may be deleted. `counts` has the
    numbers of tuples and records that it withheld so far, by kind. `delivered_ms` and `through` are
    those of `catalog.runs.RunReport`.
    """

    __tablename__ = "run_statuses"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    state: Mapped[str] = mapped_column(String(16))  # starting, running, restarting, failed, stopped
    message: Mapped[str] = mapped_column(default="")
    fingerprint: Mapped[str] = mapped_column(String(64), default="")
    updated_at: Mapped[datetime]
    since: Mapped[datetime]
    topics: Mapped[list[str]] = mapped_column(JSON, default=list)
    counts: Mapped[dict[str, int]] = mapped_column(JSON, default=dict)
    delivered_ms: Mapped[int | None]
    through: Mapped[bool] = mapped_column(default=False)


class Heartbeat(Base):
    """The heartbeat of an engine: a count of beats. It has no time, because clocks differ.

    Other processes watch whether the count goes on (`catalog.pulse`). `applied` is the generation
    that the engine has applied: the `RunStatus` of each of its runs has the topics of that
    generation. Its process began at the beat `began`. It has died `deaths` times since it last
    lived long.
    """

    __tablename__ = "heartbeats"
    engine: Mapped[str] = mapped_column(String(32), primary_key=True)
    beats: Mapped[int] = mapped_column(default=0)
    applied: Mapped[int] = mapped_column(default=-1)
    began: Mapped[int] = mapped_column(default=0)
    deaths: Mapped[int] = mapped_column(default=0)
    ended: Mapped[bool] = mapped_column(default=False)


class Assignment(Base):
    """Where an execution runs; `catalog.assignments` has the rules.

    `home` is the engine whose slots it takes. `engine` is the only one that may run it now. While
    it is `on_trial` it belongs in the engine `probation`, where one `trial_group` is `tried` at a
    time. `tried_beat` is a beat of `probation`, and all other beats are of the home engine.
    `parked_because` is the reason why it is parked, and empty if it is not.
    """

    __tablename__ = "assignments"
    execution_id: Mapped[int] = mapped_column(ForeignKey("executions.id"), primary_key=True)
    home: Mapped[str] = mapped_column(String(32))
    engine: Mapped[str] = mapped_column(String(32), index=True)
    changed_beat: Mapped[int] = mapped_column(default=0)
    on_trial: Mapped[bool] = mapped_column(default=False)
    trial_group: Mapped[int] = mapped_column(default=0)
    tried: Mapped[bool] = mapped_column(default=False)
    tried_beat: Mapped[int | None]
    trials: Mapped[int] = mapped_column(default=0)
    deaths: Mapped[int] = mapped_column(default=0)
    parked_because: Mapped[str] = mapped_column(String(200), default="")


class TopicFault(Base):
    """A topic that an engine found to differ from what the catalog says.

    Only the runs that use the topic stop.
    """

    __tablename__ = "topic_faults"
    topic: Mapped[str] = mapped_column(String(160), primary_key=True)
    engine: Mapped[str] = mapped_column(String(32), primary_key=True)
    reason: Mapped[str] = mapped_column(String(200))
    since: Mapped[datetime]


class Generation(Base):
    """One row that counts the changes of the wanted runs. Engines read it to notice changes."""

    __tablename__ = "generation"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    value: Mapped[int] = mapped_column(default=0)


class AuditEntry(Base):
    """One decision or change. `hash` covers the entry and the hash before it."""

    __tablename__ = "audit"
    seq: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64))
    object: Mapped[str] = mapped_column(String(200))
    outcome: Mapped[str] = mapped_column(String(16))  # allowed, denied, changed, failed
    reason: Mapped[str]
    detail: Mapped[dict[str, Any]]
    hash: Mapped[str] = mapped_column(String(64))


class AuditHead(Base):
    """The number and hash of the newest entry. Changes lock this row, so they run one by one."""

    __tablename__ = "audit_head"
    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str] = mapped_column(String(64))
