"""Alembic's entry. The connection and its transaction come from `app.database.migrate`; there is no other way in."""

from alembic import context

from app.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
