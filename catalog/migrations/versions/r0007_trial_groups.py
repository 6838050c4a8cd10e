"""Trials: suspected executions are tried in groups."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_7"
down_revision = "v0_2_6"


def upgrade() -> None:
    """Add the column. What is on trial already goes on in a group of its own."""
    with op.batch_alter_table("assignments") as assignments:
        assignments.add_column(sa.Column("trial_group", sa.BigInteger, nullable=True))
    op.execute("UPDATE assignments SET trial_group = output_id")
    with op.batch_alter_table("assignments") as assignments:
        assignments.alter_column("trial_group", existing_type=sa.BigInteger, nullable=False)
