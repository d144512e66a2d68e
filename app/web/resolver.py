"""Calls an endpoint with its declared parameters and dependencies, as FastAPI does, at a fraction of the cost.

FastAPI works out for every request what a route declares, and opens two exit stacks; that costs more than a score. The
declarations never change while the service runs, so `compile_route` turns them into a list of calls once. It supports
what the routes of this service use: async dependencies without `yield`, path and query parameters, optional headers,
one JSON body, and endpoints that return a `Response`. For anything else it returns None, and FastAPI handles the route
itself.

`create_app(settings, precompiled=False)` leaves everything to FastAPI. `make plain-test` runs the tests of all services
without this module.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from fastapi import Request
from fastapi._compat import ModelField, field_annotation_is_sequence
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_typed_return_annotation, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.security import SecurityScopes
from starlette.responses import Response

Endpoint = Callable[[Request], Awaitable[Response]]
Check = Callable[[Request], Awaitable[None]]
Call = Callable[[Request, Any, list[Any], list[Any]], Awaitable[Any]]  # with body, results and errors so far
Reader = Callable[[Request, Any, dict[str, Any]], Sequence[Any]]  # adds an argument; what is wrong with it
FAILED = object()  # the result of a step whose parameters, or whose dependencies, are invalid


@dataclass(frozen=True, slots=True)
class Step:
    """One call: of a dependency, or of the endpoint."""

    call: Callable[..., Awaitable[Any]]
    from_steps: tuple[tuple[str, int], ...]  # argument, index of the step whose result it is
    constants: tuple[tuple[str, Any], ...]
    request_name: str | None
    path: list[ModelField]
    headers: list[ModelField]
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
    calls = [_compile(step) for step in steps]
    before, after = calls[:checked], calls[checked:]
    has_body = bool(endpoint.body_params)

    async def handle(request: Request) -> Response:
        results: list[Any] = []
        errors: list[Any] = []
        for call in before:
            results.append(await call(request, None, results, errors))
        await before_endpoint(request)
        body = await request.json() if has_body else None
        for call in after:
            results.append(await call(request, body, results, errors))
        if errors:
            raise RequestValidationError(errors, body=body)
        return results[-1]  # type: ignore[no-any-return]

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
            headers=dependant.header_params,
            query=dependant.query_params,
            body=dependant.body_params,
        )
    )
    indexes[key] = len(steps) - 1
    return indexes[key]


def _is_unsupported(dependant: Dependant, call: Callable[..., Any]) -> bool:
    is_async = iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__)
    others = (
        any(_is_required_or_list(field) for field in dependant.header_params),
        dependant.cookie_params,
        dependant.websocket_param_name,
        dependant.response_param_name,
        dependant.background_tasks_param_name,
    )
    has_other_body = len(dependant.body_params) > 1 or any(
        getattr(field.field_info, "embed", None) for field in dependant.body_params
    )
    return not is_async or isasyncgenfunction(call) or any(others) or has_other_body or not dependant.use_cache


def _compile(step: Step) -> Call:
    """The call of a step: only what the step declares is looked at for each request."""
    call, constants, from_steps, request_name = step.call, dict(step.constants), step.from_steps, step.request_name

    def run(request: Request, body: Any, results: list[Any], errors: list[Any]) -> Awaitable[Any]:
        arguments = constants.copy()
        for name, index in from_steps:
            arguments[name] = results[index]
        if request_name is not None:
            arguments[request_name] = request
        return _failed() if errors and FAILED in arguments.values() else call(**arguments)

    if not (step.path or step.headers or step.query or step.body):
        return run

    readers = [_path_reader(field) for field in step.path] + [_body_reader(field) for field in step.body]
    readers += [_header_reader(field) for field in step.headers]

    def run_with_parameters(request: Request, body: Any, results: list[Any], errors: list[Any]) -> Awaitable[Any]:
        arguments, found = constants.copy(), len(errors)
        for name, index in from_steps:
            arguments[name] = results[index]
        if request_name is not None:
            arguments[request_name] = request
        for read in readers:
            errors.extend(read(request, body, arguments))
        if step.query:
            values, invalid = request_params_to_args(step.query, request.query_params)
            arguments.update(values)
            errors.extend(invalid)
        is_invalid = len(errors) > found or (errors and FAILED in arguments.values())
        return _failed() if is_invalid else call(**arguments)

    return run_with_parameters


async def _failed() -> object:
    return FAILED


def _path_reader(field: ModelField) -> Reader:
    name, alias, loc = field.name, field.alias, ("path", field.alias)
    info = field.field_info
    if info.annotation is str and not info.metadata:

        def read_text(request: Request, body: Any, arguments: dict[str, Any]) -> Sequence[Any]:
            arguments[name] = request.scope["path_params"][alias]  # any text is valid
            return ()

        return read_text

    def read(request: Request, body: Any, arguments: dict[str, Any]) -> Sequence[Any]:
        arguments[name], invalid = field.validate(request.path_params[alias], loc=loc)
        return invalid

    return read


def _is_required_or_list(header: ModelField) -> bool:
    return header.field_info.is_required() or field_annotation_is_sequence(header.field_info.annotation)


def _header_reader(field: ModelField) -> Reader:
    name, sent_as, loc = field.name, field.alias.lower().encode(), ("header", field.alias)

    def read(request: Request, body: Any, arguments: dict[str, Any]) -> Sequence[Any]:
        for key, value in request.scope["headers"]:
            if key == sent_as:
                arguments[name], invalid = field.validate(value.decode("latin-1"), loc=loc)
                return invalid
        arguments[name] = field.get_default()
        return ()

    return read


def _body_reader(field: ModelField) -> Reader:
    name = field.name

    def read(request: Request, body: Any, arguments: dict[str, Any]) -> Sequence[Any]:
        arguments[name], invalid = field.validate(body, loc=("body",))
        return invalid

    return read
