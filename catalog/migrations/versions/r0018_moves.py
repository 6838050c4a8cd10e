"""Moves: outputs whose state others share, and copies of state."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_18"
down_revision = "v0_2_17"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns. What keeps state and was added before has no key, and runs alone."""
    with op.batch_alter_table("executions") as executions:
        executions.add_column(sa.Column("whole_ms", sa.BigInteger, nullable=True))
        executions.add_column(sa.Column("copy_of", sa.BigInteger, nullable=True))
        executions.create_index("ix_executions_copy_of", ["copy_of"])
    with op.batch_alter_table("outputs") as outputs:
        outputs.add_column(sa.Column("after_ms", sa.BigInteger, nullable=True))
        outputs.add_column(sa.Column("moves_to", KEY, nullable=True))
        outputs.add_column(sa.Column("turn_ms", sa.BigInteger, nullable=True))
        outputs.add_column(
            sa.Column("turns", sa.Boolean, nullable=False, server_default=sa.false())
        )
        outputs.create_foreign_key("outputs_moves_to_fkey", "executions", ["moves_to"], ["id"])
        outputs.create_index("ix_outputs_moves_to", ["moves_to"])
    with op.batch_alter_table("outputs") as outputs:
        outputs.alter_column("turns", server_default=None)
    with op.batch_alter_table("run_statuses") as statuses:
        statuses.add_column(sa.Column("delivered_ms", sa.BigInteger, nullable=True))
