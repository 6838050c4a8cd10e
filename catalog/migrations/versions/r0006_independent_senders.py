"""Independent senders: the users whose tuples count for a stream's declared aggregate."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_6"
down_revision = "v0_2_5"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table. No sender is independent before its stream's owner says so."""
    op.create_table(
        "independent_senders",
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.Boolean, nullable=False),
        sa.UniqueConstraint("stream_id", "number"),
    )
