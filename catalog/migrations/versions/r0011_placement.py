"""Where the fan-out of an output is: semantics `view`."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_11"
down_revision = "v0_2_10"


def upgrade() -> None:
    """Add the column. Each output so far has its fan-out at the sink."""
    with op.batch_alter_table("outputs") as outputs:
        outputs.add_column(
            sa.Column("placement", sa.String(16), nullable=False, server_default="sink")
        )
    with op.batch_alter_table("outputs") as outputs:
        outputs.alter_column("placement", server_default=None)
