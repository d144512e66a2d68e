"""Calls an endpoint with its declared parameters and dependencies, as FastAPI does, at a fraction of the cost.

FastAPI works out for every request what a route declares, and opens two exit stacks; that costs more than a score. The
declarations never change while the service runs, so `compile_route` turns them into a list of steps once. It supports
what the routes of this service use: async dependencies without `yield`, path and query parameters, one JSON body, and
endpoints that return a `Response`. For anything else it returns None, and FastAPI handles the route itself.

`create_app(settings, precompiled=False)` leaves everything to FastAPI; the HTTP tests run both ways.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_typed_return_annotation, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.security import SecurityScopes
from starlette.responses import Response

Endpoint = Callable[[Request], Awaitable[Response]]
Check = Callable[[Request], Awaitable[None]]
FAILED = object()  # the result of a step whose parameters, or whose dependencies, are invalid


@dataclass(frozen=True, slots=True)
class Step:
    """One call: of a dependency, or of the endpoint."""

    call: Callable[..., Awaitable[Any]]
    from_steps: tuple[tuple[str, int], ...]  # argument, index of the step whose result it is
    constants: tuple[tuple[str, Any], ...]
    request_name: str | None
    path: list[ModelField]
    query: list[ModelField]
    body: list[ModelField]


class Unsupported(Exception):
    """The route declares something that only FastAPI itself handles."""


def compile_route(endpoint: Dependant, access_check: Dependant, before_endpoint: Check) -> Endpoint | None:
    """`access_check` runs first, then `before_endpoint`, then every other dependency and the endpoint."""
    steps: list[Step] = []
    indexes: dict[Any, int] = {}
    try:
        _add(access_check, steps, indexes)
        checked = len(steps)
        _add(endpoint, steps, indexes)
    except Unsupported:
        return None
    if not issubclass(get_typed_return_annotation(steps[-1].call) or object, Response):
        return None
    before, after = tuple(steps[:checked]), tuple(steps[checked:])

    async def handle(request: Request) -> Response:
        results: list[Any] = []
        errors: list[Any] = []
        for step in before:
            results.append(await _run(step, request, None, results, errors))
        await before_endpoint(request)
        body = await request.json() if endpoint.body_params else None
        for step in after[:-1]:
            results.append(await _run(step, request, body, results, errors))
        response = await _run(after[-1], request, body, results, errors)
        if errors:
            raise RequestValidationError(errors, body=body)
        return response  # type: ignore[no-any-return]

    return handle


def _add(dependant: Dependant, steps: list[Step], indexes: dict[Any, int]) -> int:
    """Appends the steps that a dependency needs, then its own; each one only once. Returns the index of its result."""
    call = dependant.call
    scopes = tuple(dict.fromkeys([*(dependant.parent_oauth_scopes or ()), *(dependant.own_oauth_scopes or ())]))
    key = (call, scopes)
    if key in indexes:
        return indexes[key]
    if call is None or _is_unsupported(dependant, call):
        raise Unsupported
    if any(sub.body_params for sub in dependant.dependencies):
        raise Unsupported  # only the endpoint is given the body
    needed = [(sub.name, _add(sub, steps, indexes)) for sub in dependant.dependencies]
    constants: tuple[tuple[str, Any], ...] = ()
    if dependant.security_scopes_param_name:
        constants = ((dependant.security_scopes_param_name, SecurityScopes(list(scopes))),)
    steps.append(
        Step(
            call=call,
            from_steps=tuple((name, index) for name, index in needed if name is not None),
            constants=constants,
            request_name=dependant.request_param_name or dependant.http_connection_param_name,
            path=dependant.path_params,
            query=dependant.query_params,
            body=dependant.body_params,
        )
    )
    indexes[key] = len(steps) - 1
    return indexes[key]


def _is_unsupported(dependant: Dependant, call: Callable[..., Any]) -> bool:
    is_async = iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__)
    others = (
        dependant.header_params,
        dependant.cookie_params,
        dependant.websocket_param_name,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
    )
    has_other_body = len(dependant.body_params) > 1 or any(
        getattr(field.field_info, "embed", None) for field in dependant.body_params
    )
    return not is_async or isasyncgenfunction(call) or any(others) or has_other_body or not dependant.use_cache


async def _run(step: Step, request: Request, body: Any, results: list[Any], errors: list[Any]) -> Any:
    arguments: dict[str, Any] = dict(step.constants)
    found = len(errors)
    for name, index in step.from_steps:
        arguments[name] = results[index]
    if step.request_name is not None:
        arguments[step.request_name] = request
    for field in step.path:
        arguments[field.name], invalid = field.validate(request.path_params[field.alias], loc=("path", field.alias))
        errors.extend(invalid)
    if step.query:
        values, invalid = request_params_to_args(step.query, request.query_params)
        arguments.update(values)
        errors.extend(invalid)
    for field in step.body:
        arguments[field.name], invalid = field.validate(body, loc=("body",))
        errors.extend(invalid)
    is_invalid = len(errors) > found or (errors and FAILED in arguments.values())
    return FAILED if is_invalid else await step.call(**arguments)
