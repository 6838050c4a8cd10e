"""Classes: the topic of one that is closed is deleted, also while its output goes on."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_5"
down_revision = "v0_2_4"


def upgrade() -> None:
    """Add the column; the topics of outputs that are gone are deleted already."""
    op.add_column("delivery_classes", sa.Column("removed_at", sa.DateTime, nullable=True))
    op.execute(
        "UPDATE delivery_classes SET removed_at = "
        "(SELECT gone_at FROM objects WHERE objects.id = delivery_classes.output_id)"
    )
    where = sa.text("removed_at IS NULL")
    op.create_index(
        "delivery_classes_not_removed",
        "delivery_classes",
        ["output_id"],
        sqlite_where=where,
        postgresql_where=where,
    )
