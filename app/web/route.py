"""The route class of every router, and the request class that it hands to FastAPI.

FastAPI reads the body before it resolves dependencies, takes any JSON that Python's parser takes, and lets unknown
query parameters pass. `ApiRoute` changes that at the documented extension point (`APIRoute.get_route_handler`), so that
requests are refused in this order: 401 or 403, 415, 413, 400, 422; headers that are invalid by themselves (400) come
before the body. Endpoints, parameters and dependencies are those of
ordinary FastAPI.
"""

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params, solve_dependencies
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.errors import InvalidInput
from app.formats import strict_json
from app.formats.response import encode
from app.schemas import problem as problems
from app.schemas.base import ResponseBody, plain
from app.schemas.problem import ProblemException
from app.schemas.validation import field_error
from app.web.resolver import Endpoint, compile_route
from app.web.security import access_check, required_scopes
from app.web.streaming import whole_body

MAX_BODY_BYTES = 16 * 1024  # bytes; the longest acceptable scoring request has about 1 kB
JSON = "application/json"
IDEMPOTENCY_KEY = "Idempotency-Key"
NOT_IDEMPOTENT = (
    "This route does not take an Idempotency-Key: a repeated request would be answered, and recorded, again."
)
API_PREFIX = "/v1/"  # elsewhere a browser, a proxy or a probe may add parameters of its own
_JSON_TYPE = re.compile(rb'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)


class StrictRequest(Request):
    """A request whose body is read up to a limit, as JSON that has exactly one meaning."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = await whole_body(self, MAX_BODY_BYTES, problems.BODY_TOO_LARGE)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            headers = dict(self.scope["headers"])
            if not _JSON_TYPE.fullmatch(headers.get(b"content-type", b"")) or b"content-encoding" in headers:
                raise ProblemException(problems.WRONG_MEDIA_TYPE)
            self._json = strict_json.loads(await self.body())
        return self._json


class ApiRoute(APIRoute):
    """Authorises before it reads the body, and reads the body before FastAPI validates it."""

    precompiled: Endpoint | None = None
    required_scopes: tuple[str, ...]  # empty: anonymous callers are allowed

    @property
    def method(self) -> str:
        return next(iter(self.methods or ()))

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        check = access_check(self.dependant)
        self.required_scopes = required_scopes(check)
        access_only = Dependant(dependencies=[check], path=self.path)
        has_body = self.body_field is not None
        query_names = _names(self.dependant, params.Query)
        is_api = self.path.startswith(API_PREFIX)
        refuses_key = self.method != "GET" and IDEMPOTENCY_KEY not in _names(self.dependant, params.Header)

        async def read_strictly(request: Request) -> None:
            if refuses_key and IDEMPOTENCY_KEY in request.headers:
                raise ProblemException(problems.BAD_REQUEST, detail=NOT_IDEMPOTENT)
            if has_body:
                await request.json()
            if is_api and request.scope["query_string"]:
                _refuse_unknown_query(request, query_names)

        async def handle_strictly(request: Request) -> Response:
            request = StrictRequest(request.scope, request.receive)
            stack = request.scope["fastapi_inner_astack"]
            await solve_dependencies(
                request=request, dependant=access_only, async_exit_stack=stack, embed_body_fields=False
            )
            await read_strictly(request)
            return await handle(request)

        self.precompiled = compile_route(self.dependant, check, read_strictly)
        return handle_strictly

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs the precompiled route if the application uses them; see `resolver`."""
        application = scope["app"]
        if (
            self.precompiled is None
            or not application.state.precompiled
            or application.dependency_overrides
            or scope["method"] != self.method
        ):
            await super().handle(scope, receive, send)
            return
        response = await self.precompiled(StrictRequest(scope, receive))
        await response(scope, receive, send)


def _names(dependant: Dependant, kind: type[params.Param]) -> tuple[str, ...]:
    return tuple(param.alias for param in get_flat_params(dependant) if isinstance(param.field_info, kind))


def _refuse_unknown_query(request: Request, known: tuple[str, ...]) -> None:
    sent = [name for name, _ in request.query_params.multi_items()]
    if len(set(sent)) < len(sent) or not set(sent) <= set(known):
        allowed = f"Known query parameters, each at most once: {', '.join(known)}."
        message = allowed if known else "This route takes no query parameters."
        raise InvalidInput([field_error("unknown_field", "(query)", message)])


def whole_number(low: int, high: int) -> BeforeValidator:
    """Of a parameter: Python would also take 1_0, other scripts' digits and spaces."""

    def check(text: object) -> int:
        digits = str(text)
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(high)) and low <= int(digits) <= high):
            raise PydanticCustomError("out_of_range", f"must be a whole number from {low} to {high}.")
        return int(digits)

    return BeforeValidator(check)


def encoded_response(payload: object) -> Response:
    """A dataclass of `schemas` as JSON, without the second validation that `response_model` would do."""
    return Response(encode(payload), media_type=JSON)


def json_response(body: ResponseBody) -> Response:
    """A schema as JSON. A field that was not set is left out; only audit records have such fields."""
    return encoded_response(plain(body))
