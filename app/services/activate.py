"""Make a version current: verified first, on record before it holds, followed by every process within two seconds."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from app.audit.records import Draft
from app.audit.writer import AuditWriter
from app.database.activations import Activation, history, record_activation
from app.database.engine import Database
from app.database.times import utc_now
from app.domain.card import ModelRef
from app.errors import ActivationRefused, ArtefactRefused, DatabaseUnavailable, UnknownSite
from app.services.answer import ANSWERED, Caller
from app.services.prepare import choose_backend, prepare
from app.services.running import RunningService
from app.services.visit import recording, visiting
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
        model=model.ref,
    )
    made = await _put_on_record(service.database, service.writer, model.ref, draft)
    with suppress(DatabaseUnavailable):  # it is made; this process follows at its next look
        await service.watcher.look()
    return _told(made)


async def activate_from_outside(settings: Settings, site: str, version: str, by: str = COMMAND_LINE) -> Json:
    """The same without a running service: for the command line. Serving processes follow within two seconds."""
    ref = prepare(settings.models_dir, choose_backend(settings), site, version).ref
    async with visiting(settings) as database, recording(settings, database, "models activate") as writer:
        return _told(await _put_on_record(database, writer, ref, Draft("activation", utc_now(), by, model=ref)))


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


async def _put_on_record(database: Database, writer: AuditWriter, ref: ModelRef, draft: Draft) -> Activation:
    """Two records, of the attempt and of the deed: whatever fails between them, the audit tells which it was.

    One budget for all of it, which starts now: reading the model may have taken longer than an answer may.
    """
    deadline = asyncio.get_running_loop().time() + writer.budget_seconds
    await writer.write([replace(draft, output={"step": "begun"})], deadline)
    try:
        async with asyncio.timeout_at(deadline), database.writing() as connection:
            made = await record_activation(connection, ref.site, ref.version, ref.sha256, draft.principal, utc_now)
    except TimeoutError as error:
        raise DatabaseUnavailable from error
    await writer.write([replace(draft, output={"step": "made"})], deadline)
    return made


def _told(made: Activation) -> Json:
    return {
        "site": made.site,
        "version": made.version,
        "sha256": made.sha256,
        "activated_at": made.activated_at,
        "activated_by": made.activated_by,
    }
