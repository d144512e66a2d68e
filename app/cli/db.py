"""`normalcy db`: migrate the database."""

import typer

from app.cli.common import JsonOption, run, say, show

group = typer.Typer(help="Upgrade the database schema.", no_args_is_help=True)


@group.callback()
def _group() -> None:
    """Upgrade the database schema."""


@group.command()
def upgrade(json: JsonOption = False) -> None:
    """Apply all pending migrations, and on PostgreSQL create the audit's partitions for the coming months.

    It is safe to run it again.
    """
    from app.runtime.command import upgrade_database

    applied, notes = run(upgrade_database)

    def print_text() -> None:
        say(f"Applied {', '.join(applied)}." if applied else "The database is up to date.")
        for note in notes:
            say(f"Note: {note}")

    show({"applied": applied, "notes": notes}, json, print_text)
