"""Unanswered grants: what Kafka was asked for, and may still carry out."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_20"
down_revision = "v0_2_19"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table. What was asked before is not known."""
    op.create_table(
        "unanswered_grants",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("request", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("topic", sa.String(160), nullable=False),
        sa.Column("asked_at", sa.DateTime(), nullable=False),
        sa.Column("lost", sa.Boolean, nullable=False),
        sa.Column("banned_at", sa.DateTime(), nullable=True),
    )
    for column in ("request", "principal", "topic"):
        op.create_index(f"ix_unanswered_grants_{column}", "unanswered_grants", [column])
