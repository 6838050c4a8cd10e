"""Several roles of a query, classes that run apart, and floors of senders."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_14"
down_revision = "v0_2_13"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Let each query keep the role that it names. No class runs apart, and no stream has floors."""
    _name_several_roles()
    with op.batch_alter_table("delivery_classes") as classes:
        classes.add_column(sa.Column("ways", sa.JSON, nullable=True))
        classes.add_column(sa.Column("starting_offsets", sa.JSON, nullable=True))
    _add_floors()


def _name_several_roles() -> None:
    op.create_table(
        "query_as_roles",
        sa.Column("query_id", KEY, sa.ForeignKey("queries.object_id"), primary_key=True),
        sa.Column("role_id", KEY, sa.ForeignKey("roles.id"), primary_key=True),
    )
    op.create_index("ix_query_as_roles_role_id", "query_as_roles", ["role_id"])
    op.execute(
        "INSERT INTO query_as_roles (query_id, role_id) "
        "SELECT object_id, as_role_id FROM queries WHERE as_role_id IS NOT NULL"
    )
    op.drop_index("ix_queries_as_role_id", "queries")
    with op.batch_alter_table("queries") as queries:
        queries.add_column(
            sa.Column("narrowed", sa.Boolean, nullable=False, server_default=sa.false())
        )
        queries.drop_constraint("queries_as_role", type_="foreignkey")
        queries.drop_column("as_role_id")
    op.execute(
        "UPDATE queries SET narrowed = true WHERE object_id IN "
        "(SELECT query_id FROM query_as_roles)"
    )
    with op.batch_alter_table("queries") as queries:
        queries.alter_column("narrowed", server_default=None)


def _add_floors() -> None:
    with op.batch_alter_table("streams") as streams:
        streams.add_column(
            sa.Column("floored", sa.Boolean, nullable=False, server_default=sa.false())
        )
    with op.batch_alter_table("streams") as streams:
        streams.alter_column("floored", server_default=None)
    with op.batch_alter_table("senders") as senders:
        senders.add_column(sa.Column("floor", sa.String, nullable=True))
        senders.add_column(sa.Column("stamped", sa.String, nullable=True))
        senders.add_column(
            sa.Column("lowered", sa.Boolean, nullable=False, server_default=sa.false())
        )
    with op.batch_alter_table("senders") as senders:
        senders.alter_column("lowered", server_default=None)
    op.create_table(
        "floor_categories",
        sa.Column("stream_id", KEY, sa.ForeignKey("streams.object_id"), primary_key=True),
        sa.Column("bit", KEY, sa.ForeignKey("categories.bit"), primary_key=True),
        sa.Column("applied", sa.Boolean, nullable=False),
    )
