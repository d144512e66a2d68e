"""Make a version current: verified first, on record before it holds, followed by every process within two seconds."""

import asyncio
from contextlib import suppress
from typing import Any

from app.audit import changes
from app.audit.records import NewRecord
from app.clock import utc_now
from app.database.activations import Activation, history
from app.database.engine import Database
from app.domain.card import ModelRef
from app.errors import ActivationFailed, DatabaseUnavailable, InvalidArtefact, NotDurable, UnknownSite
from app.runtime.command import command_facts, visiting
from app.runtime.load_model import choose_backend, prepare
from app.runtime.runtime import Runtime
from app.services.score_measurements import ANSWERED, Caller
from app.settings import Settings

Json = dict[str, Any]

COMMAND_LINE = "command-line"


async def activate(runtime: Runtime, caller: Caller, site: str, version: str) -> Json:
    """When this returns, this process answers with the version. On failure the one before keeps serving."""
    try:
        model = await runtime.loaded_models.fetch(site, version)
    except InvalidArtefact as error:
        raise ActivationFailed(str(error)) from error
    except OSError as error:
        raise ActivationFailed("its files cannot be read.") from error
    draft = NewRecord(
        kind="activation",
        at=runtime.clock(),
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
    )
    if runtime.writer.not_durable:
        raise NotDurable(runtime.writer.not_durable)
    facts, budget = runtime.writer.facts, runtime.writer.budget_seconds
    made = await _put_on_record(runtime.database, model.ref, draft, facts, budget)
    with suppress(DatabaseUnavailable):  # it is made; this process follows at its next look
        await runtime.poller.look()
    return _told(made)


async def activate_from_outside(settings: Settings, site: str, version: str, by: str = COMMAND_LINE) -> Json:
    """The same without a running service: for the command line. Serving processes follow within two seconds."""
    ref = prepare(settings.models_dir, choose_backend(settings), site, version).ref
    draft = NewRecord("activation", utc_now(), by, route="normalcy models activate")
    facts = command_facts(settings, "models activate")
    async with visiting(settings) as database:
        return _told(await _put_on_record(database, ref, draft, facts, settings.audit_budget_seconds))


async def version_history(runtime: Runtime, site: str) -> Json:
    published = await runtime.loaded_models.published()
    if site not in published:
        raise UnknownSite(site)
    async with runtime.database.reading() as connection:
        periods = await history(connection, site)
    current = runtime.loaded_models.current.get(site)
    return {
        "site": site,
        "current": current.ref.version if current else None,
        "history": [
            {
                "version": period.activation.version,
                "sha256": period.activation.sha256,
                "from": period.activation.activated_at,
                "until": period.until,
                "by": period.activation.activated_by,
            }
            for period in periods
        ],
    }


async def _put_on_record(database: Database, ref: ModelRef, draft: NewRecord, facts: Json, budget: float) -> Activation:
    """The record and the row that refers to it, together or not at all.

    The budget, in seconds, starts now: reading the model may have taken longer than an answer may.
    """
    try:
        async with asyncio.timeout(budget), database.writing() as connection:
            return await changes.activate(connection, ref, draft, facts)
    except TimeoutError as error:
        raise DatabaseUnavailable from error


def _told(made: Activation) -> Json:
    return {
        "site": made.site,
        "version": made.version,
        "sha256": made.sha256,
        "activated_at": made.activated_at,
        "activated_by": made.activated_by,
    }
