"""Backfills: a delivery class may have a run of its own that begins in the past and ends."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_21"
down_revision = "v0_2_20"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table and the columns. No class that is there is a backfill's."""
    # SQLite cannot make this table anew, because others refer to it. So the default stays.
    with op.batch_alter_table("delivery_classes") as classes:
        classes.add_column(sa.Column("backfills", sa.Boolean, nullable=False, server_default="0"))
    op.create_table(
        "backfills",
        sa.Column("class_id", KEY, sa.ForeignKey("delivery_classes.id"), primary_key=True),
        sa.Column("access_id", KEY, sa.ForeignKey("accesses.id"), nullable=False),
        sa.Column("since", sa.DateTime, nullable=False),
        sa.Column("after_ms", sa.BigInteger, nullable=True),
        sa.Column("ends_at", sa.DateTime, nullable=False),
        sa.Column("ends", sa.JSON, nullable=True),
        sa.Column("ended_at", sa.DateTime, nullable=True),
        sa.Column("complete", sa.Boolean, nullable=False),
    )
    op.create_index("ix_backfills_access_id", "backfills", ["access_id"])
    with op.batch_alter_table("run_statuses") as statuses:
        statuses.add_column(
            sa.Column("through", sa.Boolean, nullable=False, server_default=sa.false())
        )
    with op.batch_alter_table("run_statuses") as statuses:
        statuses.alter_column("through", server_default=None)
