"""Executions: an output and what computes it are two rows, so that equal queries share one."""

import sqlalchemy as sa
from alembic import op

revision = "v0_2_13"
down_revision = "v0_2_12"

# SQLite numbers rows by itself only for INTEGER keys.
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Give each output an execution with the output's id, so that its checkpoint stays its own.

    Its key is empty: what was added before shares with nothing.
    """
    op.create_table(
        "executions",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("starting_offsets", sa.JSON, nullable=False),
        sa.Column("slots", sa.BigInteger, nullable=False),
        sa.Column("begins_at", sa.DateTime, nullable=True),
    )
    op.create_index("ix_executions_key", "executions", ["key"])
    op.execute(
        "INSERT INTO executions (id, key, plan, starting_offsets, slots) "
        "SELECT object_id, '', plan, starting_offsets, slots FROM outputs"
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "SELECT setval(pg_get_serial_sequence('executions', 'id'), max(id)) FROM executions"
        )
    _refer_to_executions()
    _assign_executions()


def _refer_to_executions() -> None:
    with op.batch_alter_table("outputs") as outputs:
        outputs.add_column(sa.Column("execution_id", KEY, nullable=True))
        outputs.drop_column("slots")
    op.execute("UPDATE outputs SET execution_id = object_id")
    with op.batch_alter_table("outputs") as outputs:
        outputs.alter_column("execution_id", existing_type=KEY, nullable=False)
        outputs.create_foreign_key(
            "outputs_execution_id_fkey", "executions", ["execution_id"], ["id"]
        )
        outputs.create_index("ix_outputs_execution_id", ["execution_id"])


def _assign_executions() -> None:
    """Make the table again with another key, because SQLite cannot change what a key refers to."""
    columns = (
        sa.Column("home", sa.String(32), nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("changed_beat", sa.BigInteger, nullable=False),
        sa.Column("on_trial", sa.Boolean, nullable=False),
        sa.Column("trial_group", sa.BigInteger, nullable=False),
        sa.Column("tried", sa.Boolean, nullable=False),
        sa.Column("tried_beat", sa.BigInteger, nullable=True),
        sa.Column("trials", sa.BigInteger, nullable=False),
        sa.Column("deaths", sa.BigInteger, nullable=False),
        sa.Column("parked_because", sa.String(200), nullable=False),
    )
    names = ", ".join(column.name for column in columns)
    before = sa.text(f"SELECT output_id AS execution_id, {names} FROM assignments")  # noqa: S608
    rows = [dict(row) for row in op.get_bind().execute(before).mappings()]
    op.drop_table("assignments")
    made = op.create_table(
        "assignments",
        sa.Column("execution_id", KEY, sa.ForeignKey("executions.id"), primary_key=True),
        *columns,
    )
    op.create_index("ix_assignments_engine", "assignments", ["engine"])
    op.bulk_insert(made, rows)
