"""Who may pass which door: deny by default.

While no key exists the service listens on this machine only, and the Host header must say so: a web page elsewhere
could otherwise let its own name point here and read the answers (DNS rebinding). Where the target of a request names a
host as well (`GET http://host/path`), both must be this machine.
"""

from functools import lru_cache
from typing import Literal

from app.formats import problem as kinds
from app.runtime.credentials import ANONYMOUS, LOOPBACK, Principal, is_loopback
from app.web.call import Call
from app.web.problems import Refused

# `open` needs no credential; `metrics` is open or needs `model:read`, by its setting.
Lock = Literal["open", "metrics", "score", "model:read", "audit:read", "admin"]

LOCAL_NAMES = (b"localhost", b"127.0.0.1", b"[::1]")
HTTP_PORT = 80
NOT_LOCAL = "While no API key exists, the Host header must name this machine and port."
# A header that decides who asks or how the body is read has one meaning only if it is there once.
SENT_ONCE = {b"host", b"content-type", b"content-length", b"authorization", b"idempotency-key"}
REPEATED = "Host, Content-Type, Content-Length, Authorization and Idempotency-Key may each be sent once."


def admit(call: Call, lock: Lock) -> Principal:
    """Who it is, if they may pass; raises Refused otherwise."""
    _refuse_repeated_headers(call)
    needed = _needed(call, lock)
    keyring = call.runtime.keyring
    if not keyring.has_seen_keys:
        _refuse_strange_host(call)
        principal = LOOPBACK if is_loopback(call.runtime.settings.host) else ANONYMOUS
    elif needed is None:
        return ANONYMOUS
    else:
        principal = keyring.principal(_bearer(call), call.runtime.clock()) or ANONYMOUS
    if needed is None or needed in principal.scopes:
        return principal
    call.principal = principal  # the refusal is recorded under this name
    raise Refused(kinds.SCOPE_MISSING if principal is not ANONYMOUS else kinds.NO_CREDENTIAL)


def is_known(call: Call) -> bool:
    """Whether the request brings a valid credential, wherever it goes."""
    return call.runtime.keyring.principal(_bearer(call), call.runtime.clock()) is not None


def _needed(call: Call, lock: Lock) -> str | None:
    if lock == "metrics":
        return None if call.runtime.settings.metrics == "open" else "model:read"
    return None if lock == "open" else lock


def _bearer(call: Call) -> str:
    scheme, _, token = call.fields.get(b"authorization", b"").partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


@lru_cache(maxsize=8)
def _own_hosts(listening: str, port: int) -> frozenset[bytes]:
    """This machine's names with the port, which browsers leave out where it is HTTP's own."""
    address = f"[{listening}]" if ":" in listening else listening
    names = (*LOCAL_NAMES, address.lower().encode())
    with_port = {name + b":%d" % port for name in names}
    return frozenset(with_port | set(names) if port == HTTP_PORT else with_port)


def _refuse_repeated_headers(call: Call) -> None:
    headers = call.scope["headers"]
    if len(call.fields) < len(headers):  # some header is there twice: is it one of these?
        names = [name for name, _ in headers if name in SENT_ONCE]
        if len(set(names)) < len(names):
            raise Refused(kinds.BAD_REQUEST, detail=REPEATED)


def _refuse_strange_host(call: Call) -> None:
    server = call.scope.get("server")
    named = call.fields.get(b"host", b"")
    asked = {named.lower(), call.scope.get("target_authority", named).lower()}
    if server is None or not asked <= _own_hosts(call.runtime.settings.host, server[1]):
        raise Refused(kinds.BAD_REQUEST, detail=NOT_LOCAL)
