"""Sessions at a level, and accesses that were made in them."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_17"
down_revision = "v0_2_16"


def upgrade() -> None:
    """Add the columns. What there is has the level of its user."""
    for table in ("sessions", "accesses"):
        op.add_column(table, sa.Column("level", sa.JSON(none_as_null=True), nullable=True))
