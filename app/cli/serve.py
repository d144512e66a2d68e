"""`normalcy serve`: open everything, say what is served and where, then listen until told to stop."""

import asyncio
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

from app.cli.output import say
from app.settings import Settings, load_settings

if TYPE_CHECKING:
    from app.runtime.runtime import Runtime

HOW_TO_SERVE = (
    "The versions on record are those of this data folder: activate another one (`normalcy models activate {site} "
    "VERSION`), or give another model store a data folder of its own (NORMALCY_DATA_DIR)."
)


def serve() -> None:
    """Serve the API. Settings come from the environment (NORMALCY_…); without any it listens on 127.0.0.1:8000."""
    from app.observability import configure_logging

    settings = load_settings(os.environ)
    configure_logging(settings.log_level, sys.stderr)
    for talkative in ("alembic", "uvicorn.error"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    _run(settings)


def _run(settings: Settings) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from app.web.app import create_app
    from app.web.server import bind, make_server

    app = create_app(settings)
    # Entered here and not by uvicorn, so that a refusal to start comes out as the one sentence that it is.
    async with app.router.lifespan_context(app):
        listening = bind(settings)
        _announce(app.state.runtime, listening.getsockname()[1])
        _settle_memory()
        await make_server(app, settings).serve([listening])


def _settle_memory() -> None:
    """What is loaded by now stays: the collector need not look at it again, nor look after every 700 new objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _announce(runtime: "Runtime", port: int) -> None:
    settings, models = runtime.settings, runtime.loaded_models.current.values()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"Normalcy {runtime.service_info.version} ({runtime.service_info.backend}, {runtime.service_info.device})")
    say(f"Try it:       http://{host}:{port}/docs")
    say(f"Data folder:  {settings.data_dir.resolve()}")
    for model in models:
        say(f"Model:        {model.ref.site} {model.ref.version}, cohort {model.card.cohort.name}, {model.ref.sha256}")
    for site, reason in runtime.loaded_models.not_served.items():
        say(f"NOT SERVED:   {site} answers 503: {reason} {HOW_TO_SERVE.format(site=site)}")
    if not models and not runtime.loaded_models.not_served:
        say(f"No model is published in {settings.models_dir.resolve()}: scores are refused until one is.")
    if simulated := [f"{model.ref.site} {model.ref.version}" for model in models if model.is_simulated]:
        say(f"Trained on simulated people, for evaluation, not for care: {', '.join(simulated)}.")
    if not runtime.keyring.has_seen_keys:
        say("No API key exists: only this machine may ask, without a credential. `normalcy keys create` makes one.")
    sys.stdout.flush()  # into a file or a pipe it would wait for the end
