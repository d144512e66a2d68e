"""`normalcy serve` and `normalcy db`: run the service, and upgrade its database.

`serve` opens the runtime, prints what is served and where, and listens until it is stopped.
"""

import asyncio
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

import typer

from app.cli.common import JsonOption, run, say, show
from app.settings import Settings, load_settings, setting_warnings

if TYPE_CHECKING:
    from app.runtime.runtime import Runtime

db_group = typer.Typer(help="Upgrade the database schema.", no_args_is_help=True)

OTHER_STORE = "If this is another model store than before, give it a data folder of its own (NORMALCY_DATA_DIR)."


def serve() -> None:
    """Start the service. It is configured by environment variables (NORMALCY_…); by default on 127.0.0.1:8000."""
    import structlog

    from app.observability import configure_logging

    settings = load_settings(os.environ)
    configure_logging(settings.log_level, sys.stderr)
    for verbose in ("aiosqlite", "alembic", "uvicorn.error"):  # the first would log every statement, with its values
        logging.getLogger(verbose).setLevel(logging.WARNING)
    for warning in setting_warnings(os.environ, settings):
        structlog.get_logger("start").warning("risky setting", reason=warning)
    _run(settings)


def _run(settings: Settings) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from app.web.app import create_app
    from app.web.server import bind, make_server

    app = create_app(settings)
    # Entered here and not by uvicorn, so that a failure to start is reported as one sentence.
    async with app.router.lifespan_context(app):
        listening = bind(settings)
        _announce(app.state.runtime, listening.getsockname()[1])
        _freeze_memory()
        await make_server(app, settings).serve([listening])


def _freeze_memory() -> None:
    """What is loaded now stays for good: the garbage collector need not scan it, nor run after every 700 objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _announce(runtime: "Runtime", port: int) -> None:
    settings, models = runtime.settings, runtime.loaded_models.current.values()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    info = runtime.service_info
    say(f"Normalcy {info.version} ({info.backend}, {info.device})")
    say(f"Try it:       http://{host}:{port}/ (calculator), http://{host}:{port}/docs (API)")
    say(f"Data folder:  {settings.data_dir.resolve()}")
    for model in models:
        say(f"Model:        {model.ref.site} {model.ref.version}, cohort {model.card.cohort.name}, {model.ref.sha256}")
    for site, reason in runtime.loaded_models.not_served.items():
        say(f"NOT SERVED:   {site} (its requests get 503): {reason} {OTHER_STORE}")
    if not models and not runtime.loaded_models.not_served:
        say(f"No model is published in {settings.models_dir.resolve()}, so nothing can be scored yet.")
    if simulated := [f"{model.ref.site} {model.ref.version}" for model in models if model.is_simulated]:
        say(f"Trained on simulated people, for evaluation, not for care: {', '.join(simulated)}.")
    if not runtime.authenticator.is_required:
        say("No API key exists: requests are accepted from this machine only. `normalcy keys create` creates a key.")
    sys.stdout.flush()  # otherwise a file or a pipe would get it only when the service stops


@db_group.callback()
def _group() -> None:
    """Upgrade the database schema."""


@db_group.command()
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
