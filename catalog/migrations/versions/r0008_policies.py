"""Policies: what a role sees of a stream, and the views through which queries read streams."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_8"
down_revision = "v0_2_7"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables. There is no policy, so the queries that exist read all of their streams.

    Nobody knows with which roles they were added. So a policy does not stop them, and only who
    sees as much as they read keeps their results.
    """
    op.create_table(
        "policies",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), nullable=False),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("view", sa.JSON, nullable=False),
        sa.Column("xacml", sa.String, nullable=False),
        sa.UniqueConstraint("stream_id", "name"),
    )
    op.create_index("ix_policies_role_id", "policies", ["role_id"])
    op.create_table(
        "output_views",
        sa.Column("output_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("stream_id", KEY, sa.ForeignKey("objects.id"), primary_key=True),
        sa.Column("view", sa.JSON, nullable=False),
    )
    op.create_table(
        "query_roles",
        sa.Column("query_id", KEY, sa.ForeignKey("queries.object_id"), primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_index("ix_query_roles_role_id", "query_roles", ["role_id"])
    with op.batch_alter_table("queries") as queries:
        queries.add_column(sa.Column("as_role_id", KEY, nullable=True))
        queries.create_foreign_key("queries_as_role", "roles", ["as_role_id"], ["id"])
    op.create_index("ix_queries_as_role_id", "queries", ["as_role_id"])
