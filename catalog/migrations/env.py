"""What Alembic runs: the migrations, over the connection that `upgrade` opened."""

from alembic import context

from catalog.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
)
context.run_migrations()
