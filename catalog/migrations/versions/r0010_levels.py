"""Levels: conflict classes with their companies, the levels of users, streams and queries."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_10"
down_revision = "v0_2_9"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables. Nothing has a level before."""
    with op.batch_alter_table("streams") as streams:
        streams.add_column(sa.Column("level_rule", sa.JSON, nullable=True))
    with op.batch_alter_table("outputs") as outputs:
        outputs.add_column(sa.Column("level", sa.String, nullable=True))
    op.create_table(
        "conflict_classes",
        sa.Column("object_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("trusted_bit", KEY, sa.ForeignKey("categories.bit"), nullable=False),
    )
    op.create_table(
        "companies",
        sa.Column("bit", KEY, sa.ForeignKey("categories.bit"), primary_key=True),
        sa.Column("class_id", KEY, sa.ForeignKey("conflict_classes.object_id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.UniqueConstraint("class_id", "name"),
    )
    op.create_table(
        "user_levels",
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("class_id", KEY, sa.ForeignKey("conflict_classes.object_id"), primary_key=True),
        sa.Column("part", sa.String(64), nullable=True),
        sa.Column("by_choice", sa.Boolean, nullable=False),
    )
