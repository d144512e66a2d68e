"""Answer readings: find the model, score, tell, record. Nothing is returned before its record is durable."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.audit.records import NewRecord
from app.errors import FieldError, InvalidInput, NoModelLoaded, UnknownSite, UnknownVersion
from app.formats.answer import BODY, Json, Result, provenance, single, study
from app.formats.faults import unknown_site, unknown_version
from app.formats.score_request import CURRENT, ScoreRequest
from app.formats.study_request import StudyRequest
from app.formats.summaries import Judged, summarise
from app.inference.scoring import Scored
from app.runtime.load_model import ServedModel
from app.runtime.runtime import Runtime
from app.services.recorded import recorded

ANSWERED = 200
TOLD = (*BODY, "summary")  # what a record keeps of an answer


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, through which door, and until when the answer must be on record (time of the event loop)."""

    principal: str
    request_id: str
    route: str
    deadline: float


class Reading(NamedTuple):
    """A request with the model that it found on arrival."""

    model: ServedModel
    request: ScoreRequest


async def answer_reading(runtime: Runtime, caller: Caller, request: ScoreRequest) -> Json:
    reading = Reading(await find_model(runtime, caller, request), request)
    scored = await runtime.batcher.submit(reading.model.ready, request.query)
    now, asked = runtime.clock(), request.query
    told = single(caller.request_id, asked.patient, asked.diameter_mm, result(runtime, reading, scored, now))
    await runtime.writer.write([_draft(runtime, caller, reading, told, now)], caller.deadline)
    _count(runtime, reading, scored)
    return told


async def answer_study(runtime: Runtime, caller: Caller, request: StudyRequest) -> Json:
    readings = await _find_models(runtime, caller, request)
    waiting = [runtime.batcher.submit(reading.model.ready, reading.request.query) for reading in readings]
    scored = await asyncio.gather(*waiting)
    now = runtime.clock()
    results = [result(runtime, *pair, now) for pair in zip(readings, scored, strict=True)]
    told = study(caller.request_id, request.patient, results)
    drafts = [
        _draft(runtime, caller, reading, each, now, item)
        for item, (reading, each) in enumerate(zip(readings, told["results"], strict=True))
    ]
    await runtime.writer.write(drafts, caller.deadline)
    for pair in zip(readings, scored, strict=True):
        _count(runtime, *pair)
    return told


async def find_model(runtime: Runtime, caller: Caller, request: ScoreRequest) -> ServedModel:
    if request.model_version == CURRENT:
        return runtime.loaded_models.find_current(request.site)
    try:
        async with asyncio.timeout_at(caller.deadline):
            return await runtime.loaded_models.find(request.site, request.model_version)
    except TimeoutError:
        raise NoModelLoaded from None  # it is still being read, and will be there for a later request


def result(runtime: Runtime, reading: Reading, scored: Scored, now: datetime) -> Result:
    model, site = reading.model, reading.model.ref.site
    summary = summarise(Judged(site, reading.request.query, *scored), simulated=model.is_simulated)
    return Result(site, scored.answer, summary, provenance(model.provenance, runtime.provenance, now))


async def _find_models(runtime: Runtime, caller: Caller, request: StudyRequest) -> list[Reading]:
    """Of every measurement, or every fault at once."""
    readings: list[Reading] = []
    faults: list[FieldError] = []
    for place, measurement in enumerate(request.measurements):
        try:
            readings.append(Reading(await find_model(runtime, caller, measurement), measurement))
        except UnknownSite:
            faults.append(unknown_site(place))
        except UnknownVersion:
            faults.append(unknown_version(place))
    if faults:
        raise InvalidInput(faults)
    return readings


def _draft(
    runtime: Runtime, caller: Caller, reading: Reading, told: Json, now: datetime, item: int | None = None
) -> NewRecord:
    output = {name: told[name] for name in TOLD} | {"service": told["provenance"]["service"]}
    return NewRecord(
        kind="score",
        at=now,
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
        item=item,
        model=reading.model.ref,
        input=recorded(reading.request, runtime.hasher),
        output=output,
    )


def _count(runtime: Runtime, reading: Reading, scored: Scored) -> None:
    ref, verdict = reading.model.ref, scored.answer.reliability.verdict
    runtime.metrics.verdicts[ref.site, verdict].inc()
    if scored.answer.score is not None:
        runtime.metrics.scores[ref.site, ref.version].inc()
