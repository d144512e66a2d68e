"""`normalcy db`: bring the database to the tables of this program."""

import typer

from app.cli.command import run
from app.cli.output import JsonOption, say, show
from app.settings import Settings

group = typer.Typer(help="Migrate the database.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Migrate the database."""


@group.command()
def upgrade(json: JsonOption = False) -> None:
    """Migrate to the newest tables. Harmless to repeat; on PostgreSQL also makes the audit's months ahead."""
    from app.database.engine import open_database
    from app.database.migrate import pending_migrations
    from app.database.migrate import upgrade as migrate

    async def work(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
        database = open_database(settings, statement_seconds=None)
        try:
            missing = await pending_migrations(database)
            return missing, await migrate(database)
        finally:
            await database.close()

    applied, notes = run(work)

    def people() -> None:
        say(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
        for note in notes:
            say(f"Note: {note}")

    show({"applied": applied, "notes": notes}, json, people)
