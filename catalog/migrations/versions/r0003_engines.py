"""Engines: each has a heartbeat of its own, and each execution is assigned to one."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_3"
down_revision = "v0_2_2"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables for the reports of engines again. No report outlives its engine's process."""
    op.drop_table("heartbeats")
    op.create_table(
        "heartbeats",
        sa.Column("engine", sa.String(32), primary_key=True),
        sa.Column("beats", sa.BigInteger, nullable=False),
        sa.Column("applied", sa.BigInteger, nullable=False),
        sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("deaths", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
    )
    op.drop_table("topic_faults")
    op.create_table(
        "topic_faults",
        sa.Column("topic", sa.String(160), primary_key=True),
        sa.Column("engine", sa.String(32), primary_key=True),
        sa.Column("reason", sa.String(200), nullable=False),
        sa.Column("since", sa.DateTime, nullable=False),
    )
    op.create_table(
        "assignments",
        sa.Column("output_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("home", sa.String(32), nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("changed_beat", sa.BigInteger, nullable=False),
        sa.Column("on_trial", sa.Boolean, nullable=False),
        sa.Column("tried", sa.Boolean, nullable=False),
        sa.Column("tried_beat", sa.BigInteger, nullable=True),
        sa.Column("trials", sa.BigInteger, nullable=False),
        sa.Column("deaths", sa.BigInteger, nullable=False),
        sa.Column("parked_because", sa.String(200), nullable=False),
    )
    op.create_index("ix_assignments_engine", "assignments", ["engine"])
    # Nothing has been applied yet by any engine.
    op.drop_column("generation", "applied")
