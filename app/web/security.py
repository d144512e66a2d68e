"""Who may call which route: the declared dependencies `authorize`, `allow_anonymous` and `authorize_metrics`.

Every route declares one of them (`ApiRoute` refuses a route that does not), so access is denied by default.

While no API key exists, the service listens on a loopback address only, and the Host header must name this machine:
otherwise a web page could point its own host name at 127.0.0.1 and read the responses (DNS rebinding). If the request
target names a host too (`GET http://host/path`), both must be this machine.
"""

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from starlette.types import Scope

from app.runtime.credentials import ANONYMOUS, LOOPBACK, Caller, Principal, is_loopback
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.web.problems import ProblemException

LOCAL_NAMES = (b"localhost", b"127.0.0.1", b"[::1]")
HTTP_PORT = 80
NOT_LOCAL = "While no API key exists, the Host header must name this machine and port."
# Headers that decide who is calling or how the body is read are ambiguous if they are sent twice.
SENT_ONCE = {b"host", b"content-type", b"content-length", b"authorization", b"idempotency-key"}
REPEATED = "Host, Content-Type, Content-Length, Authorization and Idempotency-Key may each be sent only once."

bearer = HTTPBearer(
    scheme_name="ApiKey",
    bearerFormat="nsk_…",
    description="`Authorization: Bearer nsk_…`, created with `normalcy keys create`. Not needed while no key exists.",
    auto_error=False,
)


async def get_runtime(request: Request) -> Runtime:
    return runtime_of(request.scope)


def runtime_of(scope: Scope) -> Runtime:
    runtime: Runtime = scope["app"].state.runtime
    return runtime


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def authorize(request: Request, required: SecurityScopes, credentials: Credentials) -> Principal:
    """The authenticated principal, if it has every scope that the route requires."""
    return _admit(request, frozenset(required.scopes), credentials)


async def authorize_metrics(request: Request, required: SecurityScopes, credentials: Credentials) -> Principal:
    """As `authorize`, unless the setting NORMALCY_METRICS opens the metrics to everyone."""
    is_open = runtime_of(request.scope).settings.metrics == "open"
    return _admit(request, frozenset() if is_open else frozenset(required.scopes), credentials)


async def allow_anonymous(request: Request) -> Principal:
    """Anyone; only the checks of the headers apply."""
    return _admit(request, frozenset(), None)


ACCESS_CHECKS = (authorize, authorize_metrics, allow_anonymous)

RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


async def current_caller(
    request: Request, runtime: RuntimeDep, principal: Annotated[Principal, Security(authorize)]
) -> Caller:
    """The caller as services and the audit need it. The time allowed for the audit record starts here, when the whole
    request has arrived."""
    deadline = asyncio.get_running_loop().time() + runtime.settings.audit_budget_seconds
    return Caller(principal.name, request.state.request_id, request.scope["route"].path, deadline)


def access_check(dependant: Dependant) -> Dependant:
    """The one access check that a route declares, directly or through another dependency."""
    checks = {(check.call, required_scopes(check)): check for check in _access_checks(dependant)}
    if len(checks) != 1:
        raise TypeError(f"{dependant.path} must declare one access check: Security(authorize, scopes=[…]) or the like.")
    return next(iter(checks.values()))


def _access_checks(dependant: Dependant) -> Iterator[Dependant]:
    for declared in dependant.dependencies:
        if declared.call in ACCESS_CHECKS:
            yield declared
        else:
            yield from _access_checks(declared)


def required_scopes(check: Dependant) -> tuple[str, ...]:
    """The scopes of an access check; none if anonymous callers are allowed."""
    return tuple(dict.fromkeys([*(check.parent_oauth_scopes or ()), *(check.own_oauth_scopes or ())]))


def has_valid_credential(scope: Scope) -> bool:
    """Whether the request carries a valid key, whatever route it is for."""
    sent = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    scheme, _, token = sent.partition(" ")
    runtime = runtime_of(scope)
    return scheme.lower() == "bearer" and runtime.keyring.principal(token.strip(), runtime.clock()) is not None


def _admit(request: Request, required: frozenset[str], credentials: HTTPAuthorizationCredentials | None) -> Principal:
    """Checked once per request: `ApiRoute` asks before it reads the body, FastAPI again when it calls the endpoint."""
    state = request.state
    if getattr(state, "granted", None) == required:
        return state.principal  # type: ignore[no-any-return]
    state.principal = ANONYMOUS  # refusals are recorded under this name
    _refuse_repeated_headers(request.scope)
    runtime = runtime_of(request.scope)
    if not runtime.keyring.has_seen_keys:
        _refuse_foreign_host(request.scope, runtime.settings.host)
        state.principal = LOOPBACK if is_loopback(runtime.settings.host) else ANONYMOUS
    elif required and credentials is not None:
        found = runtime.keyring.principal(credentials.credentials.strip(), runtime.clock())
        state.principal = found or ANONYMOUS
    if not required <= state.principal.scopes:
        is_known = state.principal is not ANONYMOUS
        raise ProblemException(problems.SCOPE_MISSING if is_known else problems.NO_CREDENTIAL)
    state.granted = required
    return state.principal  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _own_hosts(listening: str, port: int) -> frozenset[bytes]:
    """The names of this machine with the port, which browsers omit if it is HTTP's default."""
    address = f"[{listening}]" if ":" in listening else listening
    names = (*LOCAL_NAMES, address.lower().encode())
    with_port = {name + b":%d" % port for name in names}
    return frozenset(with_port | set(names) if port == HTTP_PORT else with_port)


def _refuse_repeated_headers(scope: Scope) -> None:
    names = [name for name, _ in scope["headers"] if name in SENT_ONCE]
    if len(set(names)) < len(names):
        raise ProblemException(problems.BAD_REQUEST, detail=REPEATED)


def _refuse_foreign_host(scope: Scope, listening: str) -> None:
    server = scope.get("server")
    sent = dict(scope["headers"]).get(b"host", b"")
    named = {sent.lower(), scope.get("target_authority", sent).lower()}
    if server is None or not named <= _own_hosts(listening, server[1]):
        raise ProblemException(problems.BAD_REQUEST, detail=NOT_LOCAL)
