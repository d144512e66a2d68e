"""Make a version current: verified first, on record before it holds, followed by every process within two seconds."""

import asyncio
from contextlib import suppress
from typing import Any

from app.audit import changes
from app.audit.records import Draft
from app.database.activations import Activation, history
from app.database.engine import Database
from app.database.times import utc_now
from app.domain.card import ModelRef
from app.errors import ActivationRefused, ArtefactRefused, DatabaseUnavailable, NotDurable, UnknownSite
from app.services.answer import ANSWERED, Caller
from app.services.prepare import choose_backend, prepare
from app.services.running import RunningService
from app.services.visit import command_facts, visiting
from app.settings import Settings

Json = dict[str, Any]

COMMAND_LINE = "command-line"


async def activate(service: RunningService, caller: Caller, site: str, version: str) -> Json:
    """When this returns, this process answers with the version. On failure the one before keeps serving."""
    try:
        model = await service.shelf.fetch(site, version)
    except ArtefactRefused as error:
        raise ActivationRefused(str(error)) from error
    except OSError as error:
        raise ActivationRefused("its files cannot be read.") from error
    draft = Draft(
        kind="activation",
        at=service.clock(),
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
    )
    if service.writer.not_durable:
        raise NotDurable(service.writer.not_durable)
    facts, budget = service.writer.facts, service.writer.budget_seconds
    made = await _put_on_record(service.database, model.ref, draft, facts, budget)
    with suppress(DatabaseUnavailable):  # it is made; this process follows at its next look
        await service.watcher.look()
    return _told(made)


async def activate_from_outside(settings: Settings, site: str, version: str, by: str = COMMAND_LINE) -> Json:
    """The same without a running service: for the command line. Serving processes follow within two seconds."""
    ref = prepare(settings.models_dir, choose_backend(settings), site, version).ref
    draft = Draft("activation", utc_now(), by, route="normalcy models activate")
    facts = command_facts(settings, "models activate")
    async with visiting(settings) as database:
        return _told(await _put_on_record(database, ref, draft, facts, settings.audit_budget_seconds))


async def version_history(service: RunningService, site: str) -> Json:
    published = await service.shelf.published()
    if site not in published:
        raise UnknownSite(site)
    async with service.database.reading() as connection:
        reigns = await history(connection, site)
    current = service.shelf.current.get(site)
    return {
        "site": site,
        "current": current.ref.version if current else None,
        "history": [
            {
                "version": reign.activation.version,
                "sha256": reign.activation.sha256,
                "from": reign.activation.activated_at,
                "until": reign.until,
                "by": reign.activation.activated_by,
            }
            for reign in reigns
        ],
    }


async def _put_on_record(database: Database, ref: ModelRef, draft: Draft, facts: Json, budget: float) -> Activation:
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
