"""Senders: each in topic of a stream is a row.

Streams that exist already have one topic for all senders. Such streams are called shared now.
"""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_4"
down_revision = "v0_2_3"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table. Each stream that exists keeps its one topic."""
    with op.batch_alter_table("streams") as streams:
        streams.add_column(
            sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.true())
        )
    with op.batch_alter_table("streams") as streams:
        streams.alter_column("shared", server_default=None)
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
    op.execute(
        "INSERT INTO senders (stream_id, topic, state, opened_at) "
        "SELECT objects.id, 'in.' || objects.name, 'active', objects.created_at "
        "FROM objects JOIN streams ON streams.object_id = objects.id "
        "WHERE objects.removed_at IS NULL"
    )
