"""The operators that a role may use in queries, and the limits of their parameters."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_12"
down_revision = "v0_2_11"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table. Nothing is limited before."""
    op.create_table(
        "operator_limits",
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
        sa.Column("operators", sa.JSON, nullable=True),
        *(
            sa.Column(name, sa.BigInteger, nullable=True)
            for name in ("window_ms", "slide_ms", "windows", "window_rows")
        ),
    )
