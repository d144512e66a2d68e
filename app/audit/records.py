"""A record as bytes. Payload v1 is canonical JSON: keys sorted, no spaces, UTF-8, shortest exact numbers.

The bytes are stored as they were hashed and never written anew, so no later change of an encoder can break a chain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

import msgspec
import uuid_utils.compat as uuid7s

from app.clock import timestamp
from app.domain.card import ModelRef

VERSION = 1
Kind = Literal["score", "refusal", "read", "key", "activation", "genesis", "seal"]
KINDS: tuple[str, ...] = get_args(Kind)
DEEPEST = 64  # levels of a payload; what we write has a handful, and encoders stop somewhere in the hundreds
LONGEST_TEXT = 512  # of a text column; anything longer has no business there


@dataclass(frozen=True, slots=True)
class NewRecord:
    """What a record will say, before it has an id and a place in a chain."""

    kind: Kind
    at: datetime
    principal: str  # the key's id, a token's subject, "loopback", "service", ...
    route: str | None = None  # the template, such as /v1/sites/{site}/score
    status: int | None = None
    request_id: str | None = None
    item: int | None = None  # place in a study or batch
    model: ModelRef | None = None
    input: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None


class Record(NamedTuple):
    """A draft with its id, encoded. All but the payload repeats what the payload says, for queries."""

    record_id: UUID
    request_id: str | None
    item: int | None
    kind: str
    at: str
    principal: str
    status: int | None
    site: str | None
    version: str | None
    payload: bytes


class Payload(msgspec.Struct, forbid_unknown_fields=True):
    """Payload v1, exactly these keys."""

    v: Literal[1]
    kind: str
    record_id: UUID
    request_id: str | None
    item: int | None
    at: str
    principal: str
    route: str | None
    status: int | None
    model: ModelRef | None
    input: dict[str, Any] | None
    output: dict[str, Any] | None


def encode(draft: NewRecord) -> Record:
    """Raises ValueError for what a database could not store, so that one bad record never spoils its group."""
    record_id, at = uuid7s.uuid7(), timestamp(draft.at)
    payload = {
        "v": VERSION,
        "kind": draft.kind,
        "record_id": record_id,
        "request_id": draft.request_id,
        "item": draft.item,
        "at": at,
        "principal": draft.principal,
        "route": draft.route,
        "status": draft.status,
        "model": draft.model,
        "input": draft.input,
        "output": draft.output,
    }
    site, version = (draft.model.site, draft.model.version) if draft.model else (None, None)
    for text in (draft.request_id, draft.principal, site, version):
        if text is not None and ("\0" in text or len(text) > LONGEST_TEXT):
            raise ValueError("a text of the record is too long or holds a zero byte")
    return Record(
        record_id,
        draft.request_id,
        draft.item,
        draft.kind,
        at,
        draft.principal,
        draft.status,
        site,
        version,
        msgspec.json.encode(payload, order="sorted"),
    )


# What decoding a payload raises that somebody has damaged: no JSON, no UTF-8, no number, or nested without end.
UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)

_decoder = msgspec.json.Decoder(Payload)


def decode(payload: bytes) -> Payload:
    """Raises one of UNREADABLE for bytes that are no payload v1. What is returned can be encoded again."""
    found = _decoder.decode(payload)
    brackets = payload.count(b"[") + payload.count(b"{")  # a quick look spares nearly every record the walk
    if brackets > DEEPEST and _is_deeper(found.input, DEEPEST) | _is_deeper(found.output, DEEPEST):
        raise ValueError("nested too deeply")
    return found


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)
