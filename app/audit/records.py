"""A record as bytes. Payload v1 is canonical JSON: keys sorted, no spaces, UTF-8, shortest exact numbers.

The bytes are stored as they were hashed and never encoded again, so no later change of an encoder can break a chain.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

import msgspec
import uuid_utils.compat as uuid7s

from app.clock import timestamp
from app.domain.card import ModelRef
from app.errors import MalformedJson
from app.formats import strict_json

VERSION = 1
Kind = Literal["score", "refusal", "read", "key", "activation", "genesis", "seal"]
KINDS: tuple[str, ...] = get_args(Kind)
ITEMS = "items"  # of the output: the record is a block, see `app.audit.blocks`
MAX_DEPTH = 64  # levels of nesting; our payloads have a handful, and JSON encoders fail at some hundreds
MAX_TEXT_LENGTH = 512  # of a text column


@dataclass(frozen=True, slots=True)
class NewRecord:
    """The content of a record, before it has an id and a position in a chain."""

    kind: Kind
    at: datetime
    principal: str  # the key's id, a token's subject, "loopback", "service", ...
    route: str | None = None  # the template, such as /v1/sites/{site}/score
    status: int | None = None
    request_id: str | None = None
    item: int | None = None  # index in a study or batch; of a block, that of its first item
    model: ModelRef | None = None
    input: Mapping[str, Any] | None = None
    output: Mapping[str, Any] | None = None


class Record(NamedTuple):
    """A record with its id, encoded. The other columns repeat parts of the payload, for queries."""

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


def encode(new: NewRecord) -> Record:
    """Raises ValueError for what a database could not store, so that one bad record never fails its whole group."""
    record_id, at = uuid7s.uuid7(), timestamp(new.at)
    if new.output is not None and ITEMS in new.output:
        record_id = UUID(int=record_id.int >> 32 << 32)  # the ids of its items follow
    payload = {
        "v": VERSION,
        "kind": new.kind,
        "record_id": record_id,
        "request_id": new.request_id,
        "item": new.item,
        "at": at,
        "principal": new.principal,
        "route": new.route,
        "status": new.status,
        "model": new.model,
        "input": new.input,
        "output": new.output,
    }
    site, version = (new.model.site, new.model.version) if new.model else (None, None)
    for text in (new.request_id, new.principal, site, version):
        if text is not None and ("\0" in text or len(text) > MAX_TEXT_LENGTH):
            raise ValueError("a text of the record is too long or contains a zero byte")
    return Record(
        record_id,
        new.request_id,
        new.item,
        new.kind,
        at,
        new.principal,
        new.status,
        site,
        version,
        msgspec.json.encode(payload, order="sorted"),
    )


# What decoding a damaged payload raises: not JSON, not UTF-8, not a number, or nested too deeply.
UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_LONG_NUMBER = re.compile(rb"[:,\[]-?[0-9]{300}")
_MODEL_FIELDS = {field.name for field in fields(ModelRef)}
_decoder = msgspec.json.Decoder(Payload)


def decode(payload: bytes) -> Payload:
    """Raises one of UNREADABLE for bytes that are not a payload v1. What it returns can be encoded again."""
    found = _decoder.decode(payload)
    brackets = payload.count(b"[") + payload.count(b"{")  # too few to nest deeply in nearly every record
    if brackets > MAX_DEPTH and _is_deeper(found.input, MAX_DEPTH) | _is_deeper(found.output, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return found


def is_exact(payload: bytes, found: Payload) -> bool:
    """Whether the bytes, which were decoded to `found`, are as the format says in everything that decoding ignores.

    Nearly every payload is what we would write again. Others have more than one meaning, or one that other programs do
    not see: repeated keys, integers that no double holds, other forms of a UUID, fields of a model that nobody reads.
    """
    if found.kind not in KINDS or not _TIME.fullmatch(found.at):
        return False
    if not _LONG_NUMBER.search(payload) and msgspec.json.encode(found, order="sorted") == payload:
        return True
    try:
        content: Any = strict_json.loads(payload, MAX_DEPTH + 1)
    except MalformedJson:
        return False
    model = content["model"]
    return content["record_id"] == str(found.record_id) and (model is None or model.keys() == _MODEL_FIELDS)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in parts)
