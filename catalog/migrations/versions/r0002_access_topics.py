"""An access reaches several topics, and a delivery class may be a difference."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_2"
down_revision = "v0_2_1"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Each access keeps the topic that it reaches, as the only one of its topics."""
    op.add_column("delivery_classes", sa.Column("beyond", sa.String, nullable=True))
    op.execute(
        "CREATE TABLE kept_topics AS SELECT id AS access_id, topic, class_id, allowed_topic, "
        "created_at FROM accesses WHERE topic IS NOT NULL AND ended_at IS NULL"
    )
    _drop_columns()
    op.create_table(
        "access_topics",
        sa.Column("access_id", KEY, sa.ForeignKey("accesses.id"), primary_key=True),
        sa.Column("topic", sa.String(160), primary_key=True),
        sa.Column("class_id", KEY, sa.ForeignKey("delivery_classes.id"), nullable=True),
        sa.Column("leaving", sa.Boolean, nullable=False),
        sa.Column("allowed_at", sa.DateTime, nullable=True),
        sa.Column("fed_at", sa.DateTime, nullable=True),
    )
    # The old tables say that Kafka lets the access in, but not since when. `fed_at` is set later.
    op.execute(
        "INSERT INTO access_topics (access_id, topic, class_id, leaving, allowed_at, fed_at) "
        "SELECT access_id, topic, class_id, false, "
        "CASE WHEN allowed_topic = topic THEN created_at END, NULL FROM kept_topics"
    )
    op.drop_table("kept_topics")
    op.create_index("ix_access_topics_topic", "access_topics", ["topic"])
    op.create_index("ix_access_topics_class_id", "access_topics", ["class_id"])
    _index_of_those("access_topics_not_allowed", "allowed_at", "topic")
    _index_of_those("access_topics_not_fed", "fed_at", "class_id")


def _drop_columns() -> None:
    """Drop columns. SQLite makes the table again, so no other row may refer to it meanwhile."""
    for name in ("ix_accesses_class_id", "ix_accesses_topic", "accesses_live"):
        op.drop_index(name, "accesses")
    op.execute("CREATE TABLE kept_roles AS SELECT access_id, role_id FROM access_roles")
    op.execute("DELETE FROM access_roles")
    with op.batch_alter_table("accesses") as accesses:
        for column in ("class_id", "topic", "allowed_topic"):
            accesses.drop_column(column)
    op.execute("INSERT INTO access_roles SELECT access_id, role_id FROM kept_roles")
    op.drop_table("kept_roles")


def _index_of_those(name: str, without: str, column: str) -> None:
    where = sa.text(f"{without} IS NULL")
    op.create_index(name, "access_topics", [column], sqlite_where=where, postgresql_where=where)
