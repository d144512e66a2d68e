"""Alembic's entry point. The connection and its transaction come from `app.database.migrate`, and only from there."""

from alembic import context

from app.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
