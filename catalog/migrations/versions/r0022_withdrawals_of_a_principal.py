"""Withdrawals are looked up by their principal."""

from alembic import op

revision = "v0_2_22"
down_revision = "v0_2_21"


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_withdrawals_principal", "withdrawals", ["principal"])
