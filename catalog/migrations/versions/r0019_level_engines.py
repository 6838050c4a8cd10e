"""Level engines: an isolated class may have an execution of its own."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_19"
down_revision = "v0_2_18"


def upgrade() -> None:
    """Add the column. Classes that are there run with the others of their output."""
    with op.batch_alter_table("delivery_classes") as classes:
        classes.add_column(sa.Column("execution_id", sa.BigInteger, nullable=True))
        classes.create_index("ix_delivery_classes_execution_id", ["execution_id"])
