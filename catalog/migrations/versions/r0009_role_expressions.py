"""Role expressions: label rules of streams, categories of clauses and of the roles they name."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_9"
down_revision = "v0_2_8"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables. No stream has a label rule before."""
    with op.batch_alter_table("categories") as categories:
        categories.alter_column("stream_id", existing_type=sa.BigInteger, nullable=True)
        categories.add_column(sa.Column("role_id", KEY, nullable=True))
        categories.create_foreign_key("categories_role_id", "roles", ["role_id"], ["id"])
        categories.create_unique_constraint("uq_categories_role_id", ["role_id"])
    with op.batch_alter_table("streams") as streams:
        streams.add_column(sa.Column("label_rule", sa.JSON, nullable=True))
    with op.batch_alter_table("senders") as senders:
        senders.add_column(
            sa.Column("readmits", sa.Boolean, nullable=False, server_default=sa.false())
        )
    with op.batch_alter_table("senders") as senders:
        senders.alter_column("readmits", server_default=None)
    op.create_table(
        "clause_roles",
        sa.Column("clause_bit", KEY, sa.ForeignKey("categories.bit"), primary_key=True),
        sa.Column("role_bit", KEY, sa.ForeignKey("categories.bit"), primary_key=True),
    )
    op.create_table(
        "label_texts",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("text", sa.String(1000), nullable=False),
        sa.Column("clauses", sa.String, nullable=False),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), nullable=True),
        sa.UniqueConstraint("stream_id", "text"),
    )
    op.create_table(
        "sender_policies",
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("user_id", KEY, sa.ForeignKey("users.id"), primary_key=True),
        sa.Column("text", sa.String(1000), nullable=False),
    )
