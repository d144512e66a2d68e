"""Score one measurement or a study: find the models, score, record. Nothing is returned before it is recorded."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from app.audit.recorded_request import recorded_input
from app.audit.records import NewRecord
from app.errors import FieldError, InvalidInput, NoModelLoaded, NormalcyError, UnknownSite, UnknownVersion
from app.formats.response import BODY, Result, provenance, score_response, study_response
from app.formats.summaries import ScoredMeasurement, summarise
from app.inference.answer_columns import ScoredAnswer
from app.inference.executor import LoadedModel
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.answers import ScoreResponse, StudyResponse, StudyResult
from app.schemas.requests import CURRENT, SiteRequest, StudyRequest
from app.schemas.validation import named_models, unknown_site, unknown_version

RECORDED = (*BODY, "summary")  # the parts of a response that its record contains


class ResolvedRequest(NamedTuple):
    """A request with the model that was current, or was asked for, when it arrived."""

    model: LoadedModel
    request: SiteRequest


async def score_measurement(runtime: Runtime, caller: Caller, request: SiteRequest) -> ScoreResponse:
    resolved = ResolvedRequest(await find_model(runtime, caller, request.site, request.model_version), request)
    scored = await runtime.batcher.submit(resolved.model, request.query)
    now = runtime.clock()
    response = score_response(caller.request_id, make_result(runtime, resolved, scored, now))
    await write_records(runtime, caller, [new_record(runtime, caller, resolved, response, now)])
    count_score(runtime, resolved, scored)
    return response


async def score_study(runtime: Runtime, caller: Caller, request: StudyRequest) -> StudyResponse:
    resolved = await _find_models(runtime, caller, request)
    scored = await asyncio.gather(*(runtime.batcher.submit(each.model, each.request.query) for each in resolved))
    now = runtime.clock()
    results = [make_result(runtime, *pair, now) for pair in zip(resolved, scored, strict=True)]
    response = study_response(caller.request_id, results)
    records = [
        new_record(runtime, caller, each, result, now, item)
        for item, (each, result) in enumerate(zip(resolved, response.results, strict=True))
    ]
    await write_records(runtime, caller, records)
    for pair in zip(resolved, scored, strict=True):
        count_score(runtime, *pair)
    return response


async def find_model(runtime: Runtime, caller: Caller, site: str, version: str) -> LoadedModel:
    if version == CURRENT:
        return runtime.loaded_models.find_current(site)
    try:
        async with asyncio.timeout_at(caller.deadline):
            return await runtime.loaded_models.find(site, version)
    except TimeoutError:
        raise NoModelLoaded from None  # it is still loading, and will be there for a later request


def make_result(runtime: Runtime, resolved: ResolvedRequest, scored: ScoredAnswer, now: datetime) -> Result:
    model, site = resolved.model, resolved.model.ref.site
    answer, tails, tails_with_error, findings, given = scored
    judged = ScoredMeasurement(site, resolved.request.query, answer, tails, tails_with_error, findings)
    summary = summarise(judged, simulated=model.is_simulated)
    return Result(site, given, answer, summary, provenance(model.provenance, runtime.service_info, now))


async def _find_models(runtime: Runtime, caller: Caller, request: StudyRequest) -> list[ResolvedRequest]:
    """For every measurement. Raises InvalidInput with all unknown sites and versions at once."""
    resolved: list[ResolvedRequest] = []
    errors: list[FieldError] = []
    for index, measurement in enumerate(request.site_requests()):
        model = await _find_or_error(runtime, caller, index, measurement.site, measurement.model_version)
        if isinstance(model, FieldError):
            errors.append(model)
        else:
            resolved.append(ResolvedRequest(model, measurement))
    if errors:
        raise InvalidInput(errors)
    return resolved


async def unknown_models(
    runtime: Runtime, caller: Caller, body: object, errors: Iterable[FieldError]
) -> list[FieldError]:
    """The unknown sites and versions of a study that was rejected for these errors, so that all are listed at once."""
    found: list[FieldError] = []
    for index, site, version in named_models(body, errors):
        with suppress(NormalcyError):  # a model that cannot be used now is no error of the request
            model = await _find_or_error(runtime, caller, index, site, version)
            found += [model] if isinstance(model, FieldError) else []
    return found


async def _find_or_error(
    runtime: Runtime, caller: Caller, measurement: int, site: str, version: str
) -> LoadedModel | FieldError:
    try:
        return await find_model(runtime, caller, site, version)
    except UnknownSite:
        return unknown_site(measurement)
    except UnknownVersion:
        return unknown_version(measurement)


def new_record(
    runtime: Runtime,
    caller: Caller,
    resolved: ResolvedRequest,
    result: ScoreResponse | StudyResult,
    now: datetime,
    item: int | None = None,
) -> NewRecord:
    return caller.new_record(
        "score",
        now,
        item=item,
        model=resolved.model.ref,
        input=recorded_input(resolved.request, runtime.hasher),
        output={name: getattr(result, name) for name in RECORDED} | {"service": result.provenance.service},
    )


async def write_records(runtime: Runtime, caller: Caller, records: Sequence[NewRecord]) -> None:
    """Encrypted, if that is on."""
    await runtime.writer.write(await runtime.data_keys.encrypted(records, caller.deadline), caller.deadline)


def count_score(runtime: Runtime, resolved: ResolvedRequest, scored: ScoredAnswer) -> None:
    ref, verdict = resolved.model.ref, scored.answer.reliability.verdict
    runtime.metrics.verdicts[ref.site, verdict].inc()
    if scored.answer.score is not None:
        runtime.metrics.scores[ref.site, ref.version].inc()
