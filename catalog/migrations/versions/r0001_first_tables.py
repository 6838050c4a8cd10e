"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_1"
down_revision = None

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
GENESIS = "0" * 64


def upgrade() -> None:
    """Make all tables, and the rows that services lock and count by."""
    _users_and_roles()
    _objects()
    _queries()
    _deliveries()
    _services()
    op.execute("INSERT INTO generation (id, value, applied) VALUES (1, 0, 0)")
    head = sa.text("INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, :genesis)")
    op.execute(head.bindparams(genesis=GENESIS))


def _users_and_roles() -> None:
    op.create_table(
        "users",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("password_hash", sa.String(100), nullable=False),
        sa.Column("must_change_password", sa.Boolean, nullable=False),
        sa.Column("locked", sa.Boolean, nullable=False),
        sa.Column("failed_logins", sa.BigInteger, nullable=False),
        sa.Column("logins_stopped_until", sa.DateTime, nullable=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "roles",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "seniorities",
        sa.Column("senior_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
        sa.Column("junior_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_index("ix_memberships_role_id", "memberships", ["role_id"])
    op.create_table(
        "sessions",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime, nullable=True),
        sa.UniqueConstraint("token_hash"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    _index_of_those("sessions_open", "sessions", "ended_at", "id")
    op.create_table(
        "session_roles",
        sa.Column("session_id", KEY, sa.ForeignKey("sessions.id"), primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_index("ix_session_roles_role_id", "session_roles", ["role_id"])


def _objects() -> None:
    op.create_table(
        "objects",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("namespace", sa.String(16), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("owner_id", KEY, sa.ForeignKey("users.id"), nullable=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("removed_at", sa.DateTime, nullable=True),
        sa.Column("gone_at", sa.DateTime, nullable=True),
    )
    op.create_index(
        "one_live_object_a_name",
        "objects",
        ["namespace", "name"],
        unique=True,
        sqlite_where=sa.text("gone_at IS NULL"),
        postgresql_where=sa.text("gone_at IS NULL"),
    )
    op.create_table(
        "grants",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), nullable=False),
        sa.Column("permission", sa.String(32), nullable=False),
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.UniqueConstraint("role_id", "permission", "object_id"),
    )
    op.create_index("ix_grants_object_id", "grants", ["object_id"])
    op.create_table(
        "categories",
        sa.Column("bit", KEY, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
    )
    op.create_index("ix_categories_stream_id", "categories", ["stream_id"])
    op.create_table(
        "schemas",
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("definition", sa.JSON, nullable=False),
    )
    op.create_table(
        "streams",
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("schema_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("relation", sa.JSON, nullable=False),
        sa.Column("record_format", sa.JSON, nullable=False),
        sa.Column("max_ahead_ms", sa.BigInteger, nullable=False),
        sa.Column("max_bytes", sa.BigInteger, nullable=False),
        sa.Column("partitions", sa.BigInteger, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("ingest_group", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_streams_ingest_group", "streams", ["ingest_group"])
    op.create_table(
        "senders",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), nullable=True),
        sa.Column("topic", sa.String(160), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("opened_at", sa.DateTime, nullable=True),
        sa.Column("removed_at", sa.DateTime, nullable=True),
        sa.UniqueConstraint("topic"),
    )
    op.create_index("ix_senders_state", "senders", ["state"])
    op.create_index("ix_senders_stream_id", "senders", ["stream_id"])


def _queries() -> None:
    op.create_table(
        "queries",
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("language", sa.String(16), nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("running", sa.Boolean, nullable=False),
        sa.Column("stopped_because", sa.String(200), nullable=False),
    )
    op.create_table(
        "outputs",
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("query_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("relation", sa.JSON, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("starting_offsets", sa.JSON, nullable=False),
        sa.Column("slots", sa.BigInteger, nullable=False),
        sa.Column("weak", sa.Boolean, nullable=False),
        sa.Column("retention_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_outputs_query_id", "outputs", ["query_id"])
    op.create_table(
        "output_inputs",
        sa.Column("output_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("relation_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
    )
    op.create_index("ix_output_inputs_relation_id", "output_inputs", ["relation_id"])


def _deliveries() -> None:
    op.create_table(
        "delivery_classes",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("output_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("topic", sa.String(160), nullable=False),
        sa.Column("clearance", sa.String, nullable=False),
        sa.Column("weak", sa.Boolean, nullable=False),
        sa.Column("opened_at", sa.DateTime, nullable=True),
        sa.Column("closed_at", sa.DateTime, nullable=True),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("topic"),
    )
    op.create_index("ix_delivery_classes_output_id", "delivery_classes", ["output_id"])
    op.create_table(
        "accesses",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("session_id", KEY, sa.ForeignKey("sessions.id"), nullable=True),
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("class_id", KEY, sa.ForeignKey("delivery_classes.id"), nullable=True),
        sa.Column("topic", sa.String(160), nullable=True),
        sa.Column("allowed_topic", sa.String(160), nullable=True),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("ended_at", sa.DateTime, nullable=True),
        sa.Column("retired_at", sa.DateTime, nullable=True),
        sa.UniqueConstraint("principal"),
    )
    op.create_index("ix_accesses_class_id", "accesses", ["class_id"])
    op.create_index("ix_accesses_object_id", "accesses", ["object_id"])
    op.create_index("ix_accesses_session_id", "accesses", ["session_id"])
    op.create_index("ix_accesses_topic", "accesses", ["topic"])
    op.create_index("ix_accesses_user_id", "accesses", ["user_id"])
    _index_of_those("accesses_live", "accesses", "ended_at", "topic")
    _index_of_those("accesses_not_retired", "accesses", "retired_at", "ended_at")
    op.create_table(
        "access_roles",
        sa.Column("access_id", KEY, sa.ForeignKey("accesses.id"), primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_index("ix_access_roles_role_id", "access_roles", ["role_id"])
    op.create_table(
        "withdrawals",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("topic", sa.String(160), nullable=False),
        sa.Column("decided_at", sa.DateTime, nullable=False),
        sa.Column("done_at", sa.DateTime, nullable=True),
        sa.Column("unproven", sa.Boolean, nullable=False),
    )
    op.create_index("ix_withdrawals_done_at", "withdrawals", ["done_at"])
    op.create_index("ix_withdrawals_topic", "withdrawals", ["topic"])


def _services() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
    )
    op.create_table(
        "run_statuses",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("message", sa.String, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
        sa.Column("since", sa.DateTime, nullable=False),
        sa.Column("topics", sa.JSON, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
    )
    op.create_table(
        "heartbeats",
        sa.Column("part", sa.String(64), primary_key=True),
        sa.Column("beats", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "topic_faults",
        sa.Column("topic", sa.String(160), primary_key=True),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("since", sa.DateTime, nullable=False),
    )
    op.create_table(
        "generation",
        sa.Column("id", KEY, primary_key=True, autoincrement=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.Column("applied", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("seq", KEY, primary_key=True, autoincrement=False),
        sa.Column("at", sa.DateTime, nullable=False),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", KEY, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )


def _index_of_those(name: str, table: str, without: str, column: str) -> None:
    where = sa.text(f"{without} IS NULL")
    op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)
