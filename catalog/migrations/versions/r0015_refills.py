"""Refills: what a smaller class lacks of the topics that were cut."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_15"
down_revision = "v0_2_14"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table. What was cut before is not refilled."""
    op.create_table(
        "refills",
        sa.Column("class_id", KEY, sa.ForeignKey("delivery_classes.id"), primary_key=True),
        sa.Column("source", sa.String(160), primary_key=True),
        sa.Column("decided_at", sa.DateTime, nullable=False),
    )
    op.create_index("ix_refills_source", "refills", ["source"])
