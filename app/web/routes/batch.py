"""Score many measurements: JSON, a stream of JSON lines, or CSV."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.formats.response import encode
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.schemas.answers import BatchResponse
from app.schemas.problem import ProblemException
from app.schemas.requests import BATCH_EXAMPLES, BatchRequest
from app.services import score_batch as service
from app.web.openapi import PROTECTED, RECORDED, batch_body, batch_responses, problem_responses
from app.web.route import JSON, ApiRoute
from app.web.routes.scores import ScoringCaller
from app.web.security import RuntimeDep
from app.web.streaming import StreamedResponse, chunks_while_admitted, use_deadline, use_idle_deadline, whole_body

NDJSON, CSV = "application/x-ndjson", "text/csv"
MAX_BODY_BYTES = 8 * 1024 * 1024
# For a JSON batch to arrive, because it holds a slot meanwhile. A full one needs 1.1 Mbit/s; within the 15 s of other
# requests it would need 4.5 Mbit/s.
JSON_SECONDS = 60.0
_TYPE = re.compile(r'([\w/+-]+)(?:\s*;\s*charset="?utf-8"?)?(?:\s*;\s*header=present)?\s*', re.IGNORECASE)

router = APIRouter(tags=["Scores"], route_class=ApiRoute)


async def hold_slot(runtime: RuntimeDep, caller: ScoringCaller) -> AsyncIterator[None]:
    """Before the body is read, until the response was sent or the client has left."""
    with runtime.batches.slots.take(caller.principal):
        yield


@router.post(
    "/v1/batch/score",
    operation_id="scoreBatch",
    summary="Score many measurements",
    response_model=BatchResponse,
    response_description="One result per item, in order.",
    responses=problem_responses(
        *PROTECTED,
        *RECORDED,
        problems.NOT_JSON,
        problems.BATCH_TOO_LARGE,
        problems.LINE_TOO_LONG,
        problems.BATCH_MEDIA_TYPE,
    )
    | batch_responses(),
    dependencies=[Depends(hold_slot)],
    openapi_extra=batch_body(BatchRequest, BATCH_EXAMPLES),
)
async def score_batch(runtime: RuntimeDep, caller: ScoringCaller, request: Request) -> Response:
    """Scores every item exactly as it would be scored alone, without sentences. An item that cannot be scored gets its
    errors and does not affect the others; order and `id` are preserved. The version `current` is resolved once.

    `application/json` takes up to 10,000 items in 8 MiB. `application/x-ndjson` takes one item per line, without a
    limit on their number: results leave while items arrive, in order, and the last line is a summary. `text/csv` takes
    and returns tables. Every item is recorded before its result leaves; if that fails while results are already being
    sent, a line with the problem ends the stream.

    A process works on four batches at a time, of which two may be yours; with more the response is 503, before the
    body is read."""
    media_type = _media_type(request)
    if media_type == JSON:
        use_deadline(request, JSON_SECONDS)
        return await _json(runtime, caller, request)
    use_idle_deadline(request)
    body = chunks_while_admitted(request)
    if media_type == NDJSON:
        return await _streamed(service.score_ndjson(runtime, caller, body), NDJSON, _problem_line)
    return await _streamed(service.score_csv(runtime, caller, body), f"{CSV}; charset=utf-8", service.csv_problem)


def _media_type(request: Request) -> str:
    found = _TYPE.fullmatch(request.headers.get("content-type", ""))
    name = found.group(1).lower() if found else ""
    if name not in (JSON, NDJSON, CSV) or "content-encoding" in request.headers:
        raise ProblemException(problems.BATCH_MEDIA_TYPE)
    return name


async def _json(runtime: Runtime, caller: Caller, request: Request) -> Response:
    body = await whole_body(request, MAX_BODY_BYTES, problems.BATCH_TOO_LARGE, chunks_while_admitted)
    gone = asyncio.ensure_future(request.receive())  # returns when the client disconnects, or never
    try:
        parts = await service.score_json(runtime, caller, body, gone.done)
    finally:
        gone.cancel()
    return Response(b"".join(parts), media_type=JSON)


async def _streamed(
    parts: AsyncIterator[bytes], media_type: str, problem_line: Callable[[dict[str, Any]], bytes]
) -> Response:
    """What fails before the first part is a refusal with its own status."""
    return StreamedResponse(await anext(parts), parts, media_type, problem_line)


def _problem_line(problem: dict[str, Any]) -> bytes:
    return encode({"problem": problem}) + b"\n"
