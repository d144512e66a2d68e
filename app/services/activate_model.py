"""Make a version current: check it, record the activation, and let every process follow within two seconds."""

import asyncio
from contextlib import suppress
from typing import Any

from app.audit import changes
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.activations import Activation
from app.database.engine import Database
from app.domain.card import ModelRef
from app.errors import ActivationFailed, DatabaseUnavailable, InvalidArtefact, NotDurable
from app.runtime.command import command_database, command_facts
from app.runtime.credentials import Caller
from app.runtime.models import choose_backend, load_model
from app.runtime.runtime import Runtime
from app.settings import Settings

Json = dict[str, Any]

COMMAND_LINE = "command-line"


async def activate_model(runtime: Runtime, caller: Caller, site: str, version: str) -> Json:
    """When this returns, this process scores with the version. If it raises, the earlier version stays current."""
    try:
        model = await runtime.loaded_models.fetch(site, version)
    except InvalidArtefact as error:
        raise ActivationFailed(str(error)) from error
    except OSError as error:
        raise ActivationFailed("its files cannot be read.") from error
    if runtime.writer.not_durable:
        raise NotDurable(runtime.writer.not_durable)
    record = caller.new_record("activation", runtime.clock())
    facts, budget = runtime.writer.facts, runtime.writer.budget_seconds
    activation = await _activate(runtime.database, model.ref, record, facts, budget)
    with suppress(DatabaseUnavailable):  # it is activated; this process follows at its next refresh
        await runtime.poller.refresh()
    return _report(activation)


async def activate_from_command(settings: Settings, site: str, version: str, by: str = COMMAND_LINE) -> Json:
    """The same without a running service. Serving processes follow within two seconds."""
    ref = load_model(settings.models_dir, choose_backend(settings), site, version).ref
    record = NewRecord("activation", utc_now(), by, route="normalcy models activate")
    facts = command_facts(settings, "models activate")
    async with command_database(settings) as database:
        return _report(await _activate(database, ref, record, facts, settings.audit_budget_seconds))


async def _activate(database: Database, ref: ModelRef, record: NewRecord, facts: Json, budget: float) -> Activation:
    """Commits the record together with the activation that refers to it.

    `budget` is in seconds and starts now: loading the model may have taken longer than a response may.
    """
    try:
        async with asyncio.timeout(budget), database.writing() as connection:
            return await changes.activate(connection, ref, record, facts)
    except TimeoutError as error:
        raise DatabaseUnavailable from error


def _report(activation: Activation) -> Json:
    return {
        "site": activation.site,
        "version": activation.version,
        "sha256": activation.sha256,
        "activated_at": activation.activated_at,
        "activated_by": activation.activated_by,
    }
