"""The Idempotency-Key of a request: a route that takes it answers by `answer_once`.

A repetition gets the same body, byte for byte, with `Idempotent-Replayed: true`, and leaves a record of kind `read`,
because somebody got a patient's score once more. Only answers are stored: a refusal frees the key.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from fastapi import Header, Request
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from app.formats.response import encode
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.schemas.problem import ProblemException
from app.web.route import IDEMPOTENCY_KEY, JSON, encoded_response

KEY = re.compile(r"[\x21-\x7e]{1,255}")
NOT_A_KEY = "Idempotency-Key must have 1 to 255 printable ASCII characters without spaces."
REPLAYED = {"Idempotent-Replayed": "true"}
IDEMPOTENT = (problems.STILL_ANSWERING, problems.KEY_REUSED, problems.ERASED)
IdempotencyKey = Annotated[
    str | SkipJsonSchema[None],
    Header(
        alias=IDEMPOTENCY_KEY,
        description="1 to 255 printable ASCII characters, new for each request. A request that is repeated with it "
        "within 24 hours gets the same response and is not scored again.",
        json_schema_extra={"minLength": 1, "maxLength": 255},
        openapi_examples={"UUID": {"value": "5f8f1c1e-6a5b-4c62-9d0f-0c8d3b6f2a11"}},
    ),
]


async def answer_once(
    request: Request,
    runtime: Runtime,
    caller: Caller,
    key: str | None,
    subject: str | None,
    work: Callable[[], Awaitable[object]],
) -> Response:
    """The response of `work`; with an Idempotency-Key that was answered already, the stored one."""
    if key is None:
        return encoded_response(await work())
    if not KEY.fullmatch(key):
        raise ProblemException(problems.BAD_REQUEST, detail=NOT_A_KEY)

    async def encoded() -> bytes:
        return encode(await work())

    asked = await _asked(request)
    patient = runtime.hasher.hash(subject) if subject else None
    answer = await runtime.answers.answer(caller.principal, key.encode(), asked, encoded, caller.deadline, patient)
    if answer.is_repeated:
        original = {"repeats": msgspec.json.decode(answer.body)["request_id"]}
        record = caller.new_record("read", runtime.clock(), input=original, output={"records": 0})
        await runtime.writer.write([record], caller.deadline)
    return Response(answer.body, headers=REPLAYED if answer.is_repeated else None, media_type=JSON)


async def _asked(request: Request) -> bytes:
    """What makes it this request: another route or another body is another one."""
    scope = request.scope
    parts = [scope["method"].encode(), scope["raw_path"], scope["query_string"], await request.body()]
    return b"\0".join(parts)
