"""Verify the audit from time to time while the service runs, in a process of its own: hashing every record would delay
responses.

It verifies as `normalcy audit verify` does, records that it did, and reports the outcome to readiness and the metrics.
Run as a program, this module is that process: it reads the settings from its standard input.
"""

import asyncio
import os
import pickle
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

import msgspec
import structlog

from app.audit.chain import SERVICE
from app.audit.records import NewRecord
from app.database.checkpoints import may_read_audit
from app.errors import CouldNotCheck
from app.observability import describe_failure
from app.runtime.runtime import Runtime, VerificationOutcome
from app.services.verify_audit import verify_audit
from app.settings import Settings

FIRST_AFTER_SECONDS = 600.0  # services that are restarted every day verify too
ROUTE = "scheduled verification"
COMMAND = (sys.executable, "-m", "app.services.scheduled_verification")
NICENESS = 10  # responses come first


class Summary(msgspec.Struct):
    intact: bool
    records: int
    kinds: list[str]


async def verify_regularly(runtime: Runtime) -> None:
    hours = runtime.settings.audit_verify_hours
    if hours == 0:
        runtime.verification.outcome = "off"
        return
    await asyncio.sleep(min(FIRST_AFTER_SECONDS, hours * 3600))
    while True:
        await verify_once(runtime)
        await asyncio.sleep(hours * 3600)


async def verify_once(runtime: Runtime) -> None:
    """Never raises, because no response depends on it."""
    state, log = runtime.verification, structlog.get_logger("audit")
    try:
        state.outcome = await _verify(runtime)
    except Exception as error:  # noqa: BLE001 - whatever fails, readiness says that it failed
        state.outcome = "failed"
        log.error("audit not verified", **describe_failure(error))
    if state.outcome == "intact":
        state.last_intact = time.time()
    elif state.outcome == "tampered":
        log.error("audit tampered with")


async def _verify(runtime: Runtime) -> VerificationOutcome:
    async with runtime.database.reading() as connection:
        if not await may_read_audit(connection):
            return "not_permitted"
    found = await _in_another_process(runtime.settings)
    output = {"records": found.records, "intact": found.intact, "kinds": found.kinds}
    await runtime.writer.write([NewRecord("read", runtime.clock(), SERVICE, route=ROUTE, output=output)])
    return "intact" if found.intact else "tampered"


async def _in_another_process(settings: Settings) -> Summary:
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        answer, _ = await process.communicate(pickle.dumps(settings))
    finally:
        if process.returncode is None:  # the service stops
            with suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise CouldNotCheck("The process that verifies the audit failed.")
    return msgspec.json.decode(answer, type=Summary)


def main() -> None:
    os.nice(NICENESS)
    settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the service that started this process
    found = asyncio.run(verify_audit(settings, lambda *_: None))
    kinds = {*(str(each.damage) for each in found.tampering), *(str(each.damage) for each in found.rows)}
    sys.stdout.buffer.write(msgspec.json.encode(Summary(found.intact, found.records, sorted(kinds))))


if __name__ == "__main__":
    main()
