"""Answer readings: find the model, score, tell, record. Nothing is returned before its record is durable."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.audit.records import Draft
from app.errors import Fault, InputRefused, NoModelLoaded, UnknownSite, UnknownVersion
from app.formats.answer import BODY, Json, Result, provenance, single, study
from app.formats.faults import unknown_site, unknown_version
from app.formats.score_request import CURRENT, ScoreRequest
from app.formats.sentences import Judged, summarise
from app.formats.study_request import StudyRequest
from app.services.prepare import ServedModel
from app.services.recorded import recorded
from app.services.running import RunningService
from app.services.score import Scored

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


async def answer_reading(service: RunningService, caller: Caller, request: ScoreRequest) -> Json:
    reading = Reading(await find_model(service, caller, request), request)
    scored = await service.desk.submit(reading.model.ready, request.question)
    now, asked = service.clock(), request.question
    told = single(caller.request_id, asked.patient, asked.diameter_mm, result(service, reading, scored, now))
    await service.writer.write([_draft(service, caller, reading, told, now)], caller.deadline)
    _count(service, reading, scored)
    return told


async def answer_study(service: RunningService, caller: Caller, request: StudyRequest) -> Json:
    readings = await _find_models(service, caller, request)
    waiting = [service.desk.submit(reading.model.ready, reading.request.question) for reading in readings]
    scored = await asyncio.gather(*waiting)
    now = service.clock()
    results = [result(service, *pair, now) for pair in zip(readings, scored, strict=True)]
    told = study(caller.request_id, request.patient, results)
    drafts = [
        _draft(service, caller, reading, each, now, item)
        for item, (reading, each) in enumerate(zip(readings, told["results"], strict=True))
    ]
    await service.writer.write(drafts, caller.deadline)
    for pair in zip(readings, scored, strict=True):
        _count(service, *pair)
    return told


async def find_model(service: RunningService, caller: Caller, request: ScoreRequest) -> ServedModel:
    if request.model_version == CURRENT:
        return service.shelf.find_current(request.site)
    try:
        async with asyncio.timeout_at(caller.deadline):
            return await service.shelf.find(request.site, request.model_version)
    except TimeoutError:
        raise NoModelLoaded from None  # it is still being read, and will be there for a later request


def result(service: RunningService, reading: Reading, scored: Scored, now: datetime) -> Result:
    model, site = reading.model, reading.model.ref.site
    summary = summarise(Judged(site, reading.request.question, *scored), simulated=model.is_simulated)
    return Result(site, scored.answer, summary, provenance(model.provenance, service.provenance, now))


async def _find_models(service: RunningService, caller: Caller, request: StudyRequest) -> list[Reading]:
    """Of every measurement, or every fault at once."""
    readings: list[Reading] = []
    faults: list[Fault] = []
    for place, measurement in enumerate(request.measurements):
        try:
            readings.append(Reading(await find_model(service, caller, measurement), measurement))
        except UnknownSite:
            faults.append(unknown_site(place))
        except UnknownVersion:
            faults.append(unknown_version(place))
    if faults:
        raise InputRefused(faults)
    return readings


def _draft(
    service: RunningService, caller: Caller, reading: Reading, told: Json, now: datetime, item: int | None = None
) -> Draft:
    output = {name: told[name] for name in TOLD} | {"service": told["provenance"]["service"]}
    return Draft(
        kind="score",
        at=now,
        principal=caller.principal,
        route=caller.route,
        status=ANSWERED,
        request_id=caller.request_id,
        item=item,
        model=reading.model.ref,
        input=recorded(reading.request, service.hasher),
        output=output,
    )


def _count(service: RunningService, reading: Reading, scored: Scored) -> None:
    ref, verdict = reading.model.ref, scored.answer.reliability.verdict
    service.metrics.verdicts[ref.site, verdict].inc()
    if scored.answer.score is not None:
        service.metrics.scores[ref.site, ref.version].inc()
