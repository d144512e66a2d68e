"""The format of `cases.json`: requests, and what the contract says about their responses.

Programs in other languages read the same file, so every field is explained here and in docs/conformance.md.
"""

from importlib.resources import files
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

FORMAT = 1
FILE_NAME = "cases.json"


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all parts of the file: unknown fields are an error, defaults are not written."""


class Header(Part, frozen=True):
    name: str
    value: str
    repeat: int = 1  # the value is sent so many times in a row, as one long value


class CaseRequest(Part, frozen=True):
    """`json`, `text` and `base64` are three ways to give the body; a request has at most one of them."""

    method: str
    path: str
    json: Any = UNSET  # sent as UTF-8
    text: str | UnsetType = UNSET  # sent as UTF-8
    base64: str | UnsetType = UNSET  # bytes that are not UTF-8 text
    repeat: int = 1  # the body is sent so many times in a row
    headers: tuple[Header, ...] = ()  # a Content-Type or Accept given here replaces JSON
    credential: Literal["given", "none", "wrong"] = "given"  # the caller's key, no key, or one that does not exist
    request_id: str | UnsetType | None = UNSET  # unset: a new valid one for each request; null: none is sent

    @property
    def has_body(self) -> bool:
        return any(part is not UNSET for part in (self.json, self.text, self.base64))


class ExpectedError(Part, frozen=True):
    code: str
    field: str


class ExpectedNumber(Part, frozen=True):
    path: str  # as `score.exceedance[0].probability`
    value: float
    tolerance: float  # absolute


class Expected(Part, frozen=True):
    status: int
    problem: str | None = None  # the last part of `type`, after `#problem-`
    errors: tuple[ExpectedError, ...] | None = None  # exactly these, in any order
    numbers: tuple[ExpectedNumber, ...] = ()
    equals: dict[str, Any] = {}  # by path; `advisories[].code` is the list of the codes of all advisories
    headers: dict[str, str] = {}
    request_id: Literal["sent", "new", "any"] = "sent"  # repeated, a new UUIDv7, or either of the two
    rounded: bool = False  # every number of the response has at most 9 significant digits


class Case(Part, frozen=True):
    name: str
    about: str
    request: CaseRequest
    expect: Expected
    models: tuple[str, ...] = ()  # keys of `models`; skipped unless all of them are published, bit for bit
    needs_key: bool = False  # skipped if the check runs without a key
    skip_on_status: int | None = None  # with this status the caller has a scope too many, or one too few
    never_repeated: tuple[str, ...] = ()  # texts of the request that no part of the response may contain


class CaseModel(Part, frozen=True):
    site: str
    version: str
    sha256: str


class CaseFile(Part, frozen=True):
    format: int
    about: str
    rules: tuple[str, ...]  # what holds for every response
    models: dict[str, CaseModel]
    not_tried: dict[str, str]  # what the contract also says, and why no case provokes it
    cases: tuple[Case, ...]


def read_cases() -> CaseFile:
    return msgspec.json.decode(cases_text(), type=CaseFile)


def cases_text() -> bytes:
    """The published file, byte for byte."""
    return (files(__package__) / FILE_NAME).read_bytes()


def encode_cases(file: CaseFile) -> bytes:
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
