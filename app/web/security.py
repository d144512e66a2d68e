"""Who may call which route: the declared dependencies `authorize`, `allow_anonymous` and `authorize_metrics`.

Every route declares one of them (`ApiRoute` refuses a route that does not), so access is denied by default.

While neither an API key nor a JWT issuer exists, the service listens on a loopback address only, and the Host header
must name this machine: otherwise a web page could point its own host name at 127.0.0.1 and read the responses (DNS
rebinding). If the request target names a host too (`GET http://host/path`), both must be this machine.

Refusals are throttled for each caller, and for all anonymous callers together, so that a flood of them costs little.
"""

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, NoReturn

from fastapi import Depends, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes
from starlette.types import Scope

from app.runtime.authentication import LOCKED_OUT, MISSING, SCOPE_MISSING, Credential
from app.runtime.credentials import ANONYMOUS, LOOPBACK, Caller, Principal
from app.runtime.rate_limits import MAX_TRACKED, OverRate
from app.runtime.runtime import Runtime
from app.schemas import problem as problems
from app.schemas.problem import ProblemException
from app.settings import is_loopback

LOCAL_NAMES = (b"localhost", b"127.0.0.1", b"[::1]")
HTTP_PORT = 80
NOT_LOCAL = "While no credential is required, the Host header must name this machine and port."
# Headers that decide who is calling or how the body is read are ambiguous if they are sent twice.
SENT_ONCE = {b"host", b"content-type", b"content-length", b"authorization", b"idempotency-key"}
REFUSED_TOO_OFTEN = "This credential was refused too often. Wait as many seconds as `Retry-After` says, and correct it."
TOO_MANY_IN_FLIGHT = "Too many of your requests are still being answered. Send more when some of them have ended."
REPEATED = "Host, Content-Type, Content-Length, Authorization and Idempotency-Key may each be sent only once."

PER_SECOND = 100  # refusals of one caller, or of all anonymous callers together
BURST = 100  # after a quiet second so many leave at once
MIN_LONG_DELAY_SECONDS, MAX_DELAY_SECONDS = 1.0, 2.0
RUNTIME = "runtime"  # in the state
IN_FLIGHT = "in_flight"  # in the state: the caller, and as how many its request is counted
WAITED_SECONDS = "waited_seconds"  # in the state: for the keys of an issuer, which may take two seconds
LEAST_BUDGET_SECONDS = 0.4  # for a record, after that: a 503 leaves within 2.5 s
THROTTLED_SECONDS = "throttled_seconds"  # in the scope: how long the response waited, which is not processing time

bearer = HTTPBearer(
    scheme_name="ApiKey",
    bearerFormat="nsk_… or JWT",
    description="`Authorization: Bearer …`: an API key created by `normalcy keys create`, or a JWT of a configured "
    "issuer. Not needed while neither exists.",
    auto_error=False,
)


async def get_runtime(request: Request) -> Runtime:
    return runtime_of(request.scope)


def runtime_of(scope: Scope) -> Runtime:
    """As `middleware` has put it there: every look-up in the state of the application takes a microsecond."""
    runtime: Runtime = scope["state"][RUNTIME]
    return runtime


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


async def authorize(request: Request, required: SecurityScopes, credentials: Credentials) -> Principal:
    """The authenticated principal, if it has every scope that the route requires."""
    return await _admit(request, _scopes(*required.scopes), credentials)


async def authorize_metrics(request: Request, required: SecurityScopes, credentials: Credentials) -> Principal:
    """As `authorize`, unless the setting NORMALCY_METRICS opens the metrics to everyone."""
    is_open = runtime_of(request.scope).settings.metrics == "open"
    return await _admit(request, frozenset() if is_open else frozenset(required.scopes), credentials)


async def allow_anonymous(request: Request) -> Principal:
    """Anyone; only the checks of the headers apply."""
    return await _admit(request, frozenset(), None)


ACCESS_CHECKS = (authorize, authorize_metrics, allow_anonymous)

RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


async def current_caller(
    request: Request, runtime: RuntimeDep, principal: Annotated[Principal, Security(authorize)]
) -> Caller:
    """The caller as services and the audit need it. The time allowed for the audit record starts here, when the whole
    request has arrived, and is shorter if the request has waited before."""
    state, allowed = request.scope["state"], runtime.settings.audit_budget_seconds
    budget = max(allowed - state.get(WAITED_SECONDS, 0.0), min(allowed, LEAST_BUDGET_SECONDS))
    deadline = asyncio.get_running_loop().time() + budget
    return Caller(principal.name, state["request_id"], request.scope["route"].path, deadline)


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


async def _sender(scope: Scope) -> Principal:
    """Whose credential a request carries that no route has checked."""
    runtime, token = runtime_of(scope), _token(scope)
    return (token and await runtime.authenticator.owner(token, runtime.clock())) or ANONYMOUS


def _token(scope: Scope) -> str:
    """The bearer credential; empty if there is none."""
    sent = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    scheme, _, token = sent.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _admit(
    request: Request, required: frozenset[str], credentials: HTTPAuthorizationCredentials | None
) -> Principal:
    """Checked once per request: `ApiRoute` asks before it reads the body, FastAPI again when it calls the endpoint."""
    state = request.scope["state"]
    if state.get("granted") == required:
        return state["principal"]  # type: ignore[no-any-return]
    principal = state["principal"] = ANONYMOUS  # refusals are recorded under this name
    credential, reason = None, MISSING
    _refuse_repeated_headers(request.scope)
    runtime = runtime_of(request.scope)
    authenticator = runtime.authenticator
    if not authenticator.is_required:
        _refuse_foreign_host(request.scope, runtime.settings.host)
        principal = LOOPBACK if is_loopback(runtime.settings.host) else ANONYMOUS
    elif required and credentials is not None:
        began = asyncio.get_running_loop().time()
        found = await authenticator.find(credentials.credentials.strip(), runtime.clock())
        state[WAITED_SECONDS] = asyncio.get_running_loop().time() - began
        if isinstance(found, Credential):
            principal, credential = found.principal, found
        else:
            reason = found
    state["principal"] = principal
    if required and principal is ANONYMOUS:
        _refuse_credential(runtime, request.scope, credentials, reason)
    if required and principal is not LOOPBACK:
        _limit(runtime, principal.name, state)
    if credential is not None:
        authenticator.use(credential, runtime.clock())  # no other request can have used it since it was found
    if not required <= principal.scopes:
        authenticator.count(SCOPE_MISSING)
        raise ProblemException(problems.SCOPE_MISSING)
    state["granted"] = required
    return principal


async def refuse_ended_credential(request: Request) -> None:
    """For bodies that take long: a key that was revoked, and a key or token that has expired meanwhile, is refused, and
    so is a caller without one since the first key exists."""
    runtime, principal = runtime_of(request.scope), request.state.principal
    if not await runtime.authenticator.still_admits(principal, _token(request.scope), runtime.clock()):
        raise ProblemException(problems.NO_CREDENTIAL)


def count_measurements(request: Request, number: int) -> None:
    """Each of them waits for its score and its record by itself, so each counts as a request in flight."""
    state = request.scope["state"]
    if number > 1 and IN_FLIGHT in state:  # it is not there without a credential
        _count_in_flight(runtime_of(request.scope), state["principal"].name, number - 1, state)


def _limit(runtime: Runtime, name: str, state: dict[str, Any]) -> None:
    if over := runtime.limiter.take(name):
        raise _over_rate(over)
    _count_in_flight(runtime, name, 1, state)


def _count_in_flight(runtime: Runtime, name: str, more: int, state: dict[str, Any]) -> None:
    if not runtime.in_flight.begin(name, more):
        raise ProblemException(problems.OVER_RATE, detail=TOO_MANY_IN_FLIGHT)
    _, before = state.get(IN_FLIGHT, (name, 0))
    state[IN_FLIGHT] = name, before + more  # until the response was sent, see `middleware`


def _refuse_credential(
    runtime: Runtime, scope: Scope, credentials: HTTPAuthorizationCredentials | None, reason: str
) -> NoReturn:
    seconds = 0
    if credentials is not None:
        seconds = runtime.lock_outs.add((scope.get("client") or ("",))[0], credentials.credentials.strip())
    runtime.authenticator.count(LOCKED_OUT if seconds else reason)
    if not seconds:
        raise ProblemException(problems.NO_CREDENTIAL)
    locked_out = ProblemException(problems.OVER_RATE, detail=REFUSED_TOO_OFTEN)
    locked_out.headers = {"Retry-After": str(seconds)}
    raise locked_out


def _over_rate(over: OverRate) -> ProblemException:
    """With the header fields of draft-ietf-httpapi-ratelimit-headers-10."""
    error = ProblemException(problems.OVER_RATE)
    error.headers = {
        "Retry-After": str(over.retry_seconds),
        "RateLimit": f'"requests";r=0;t={over.retry_seconds}',
        "RateLimit-Policy": f'"requests";q={over.quota};w={over.window_seconds}',
    }
    return error


@lru_cache(maxsize=32)
def _scopes(*scopes: str) -> frozenset[str]:
    return frozenset(scopes)


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


class Throttle:
    """Spaces out the refusals of a caller. Only its own connections wait; a few mistakes go unnoticed.

    Without it, a caller that sends its next request on every refusal keeps the event loop as busy as with scores.
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}  # by caller: when the last response that was scheduled leaves

    def delay(self, now: float, caller: str) -> float:
        """Seconds until the next response may leave.

        Where more wait than the longest delay has room for, the next ones leave between those that are scheduled
        already. All at its end would come back together, and be in the way of everybody at one instant.
        """
        step = 1 / PER_SECOND
        last = max(self._last.get(caller, 0.0), now - BURST * step) + step
        if last > now + MAX_DELAY_SECONDS:
            last = now + MIN_LONG_DELAY_SECONDS
        if caller not in self._last and len(self._last) >= MAX_TRACKED:
            self._last = {each: when for each, when in self._last.items() if when > now - BURST * step}
        self._last[caller] = last
        return max(last - now, 0.0)


async def throttle(scope: Scope) -> None:
    """Delays a refusal, also one before any route has authenticated the caller."""
    caller = scope["state"].get("principal") or await _sender(scope)
    if caller is LOOPBACK:
        return  # the person at this machine, who has no rate either
    delay = scope["app"].state.throttle.delay(asyncio.get_running_loop().time(), caller.name)
    if delay and not runtime_of(scope).is_draining:
        scope[THROTTLED_SECONDS] = delay
        await asyncio.sleep(delay)
