"""Streams may have a declared rate."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_23"
down_revision = "v0_2_22"


def upgrade() -> None:
    """Add the column. No stream that was added before has declared a rate."""
    with op.batch_alter_table("streams") as streams:
        streams.add_column(sa.Column("rate", sa.BigInteger, nullable=True))
