"""Queries that are merged anew when policies change what their roles see."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_16"
down_revision = "v0_2_15"


def upgrade() -> None:
    """Add the time. What was stopped for a change before is merged anew when it is started."""
    op.add_column("queries", sa.Column("views_changed_at", sa.DateTime, nullable=True))
