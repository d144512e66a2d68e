"""Validate a block of requests as columns: accept fast, reject slowly.

Vectorised checks find the rows that are certainly valid. Every other row is validated by pydantic, as a single request
is: that writes the error messages, and accepts what is valid in an unusual way. Nothing is defined here: ranges come
from the schema of the request, and the combination of options that rows share is validated once by pydantic itself.
"""

import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.domain import limits
from app.domain.patient import bmi_kg_m2
from app.domain.query import CONVENTION_INDEX
from app.errors import FieldError, InvalidInput
from app.schemas.fields import spec
from app.schemas.requests import (
    BatchItem,
    DiameterFields,
    PatientFields,
    ScoreRequest,
)
from app.schemas.validation import parse

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Column = Sequence[object] | Array

ID, SITE, SEX, SUBJECT = "id", "site", "sex", "subject"
MEASURED = PatientFields.model_fields | DiameterFields.model_fields
NUMBERS = {name: field for name, field in spec(ScoreRequest).fields.items() if name in MEASURED and name != SEX}
OPTIONS = tuple(name for name in ScoreRequest.model_fields if name not in MEASURED and name != SUBJECT)
KNOWN = frozenset(BatchItem.model_fields)
NUMERIC = frozenset({float, int})
SEXES = {choice: choice == "male" for choice in spec(ScoreRequest).fields[SEX].choices}
SAFE = 1e-9  # a body mass index within this share of its limits is left to pydantic, whose last digit may differ
ANYBODY: dict[str, Any] = {"age_years": 50, "sex": "male", "height_cm": 175, "weight_kg": 75, "diameter_mm": 35}


class _Absent:
    """Of a field that a row does not give. None is a value: `null` is not a way to leave a field out."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


class Options(NamedTuple):
    """What a request asks for beside the measurement. Equal ones are the same object."""

    thresholds: tuple[float, ...]
    hdi_probability: float
    convention: int  # index into CONVENTIONS
    include_unreliable: bool
    model_version: str  # an exact version, or CURRENT


@dataclass(frozen=True, slots=True, eq=False)
class RequestColumns:
    """N requests, each valid or with its errors. Of a row with errors the other columns mean nothing."""

    ids: Sequence[str | None]
    sites: Sequence[str]
    subjects: Sequence[str]  # empty: not given
    options: Sequence[Options]
    numbers: Mapping[str, Array]  # age, body size, diameter and its error (0: not stated), by the names of the fields
    male: Mask
    errors: dict[int, tuple[FieldError, ...]]

    def __len__(self) -> int:
        return self.male.size


def validate_items(items: Sequence[object]) -> RequestColumns:
    """Of parsed JSON, each item as `BatchItem`."""
    objects: list[dict[str, object]] = [item if type(item) is dict else {} for item in items]
    given = set().union(*objects)
    columns = {name: [item.get(name, ABSENT) for item in objects] for name in KNOWN & given}
    odd = [] if given <= KNOWN else [k for k, item in enumerate(objects) if not item.keys() <= KNOWN]
    return validate_columns(columns, len(items), items.__getitem__, odd)


def validate_columns(
    columns: Mapping[str, Column], count: int, row: Callable[[int], object], odd: Sequence[int] = ()
) -> RequestColumns:
    """Of columns by the names of the fields of `BatchItem`; what a row does not give is ABSENT, in an array NaN.

    `row` returns the whole item of a row that is not certainly valid, those at the indices `odd` included.
    """
    nothing = [ABSENT] * count
    numbers = {name: _numbers(columns.get(name, nothing), field.default) for name, field in NUMBERS.items()}
    sexes = [SEXES.get(sex, -1) if type(sex) is str else -1 for sex in columns.get(SEX, nothing)]
    options = _options(columns, count)
    ids, sites, subjects = (columns.get(name, nothing) for name in (ID, SITE, SUBJECT))
    named = {site for site in set(map(_as_text, sites)) if _is_name(site)}
    certain = _are_plausible(numbers) & (np.array(sexes) >= 0)
    certain &= np.array([choice is not None for choice in options], dtype=bool)
    certain &= np.array([type(site) is str and site in named for site in sites], dtype=bool)
    for texts in (ids, subjects):
        if texts is not nothing:
            certain &= np.array([text is ABSENT or _is_plain(text) for text in texts], dtype=bool)
    certain[list(odd)] = False
    found = RequestColumns(
        [text if type(text) is str else None for text in ids],
        [site if type(site) is str else "" for site in sites],
        [text if type(text) is str else "" for text in subjects],
        [choice or DEFAULT for choice in options],
        numbers,
        np.array(sexes) > 0,
        {},
    )
    for k in np.flatnonzero(~certain).tolist():
        _validate_row(found, k, row(k))
    return found


def _validate_row(found: RequestColumns, k: int, item: object) -> None:
    try:
        request = parse(BatchItem, item)
    except InvalidInput as invalid:
        found.errors[k] = invalid.errors
        found.ids[k] = _valid_id(item)  # type: ignore[index]
        return
    found.ids[k], found.sites[k], found.subjects[k] = request.id, request.site, request.subject  # type: ignore[index]
    found.options[k] = _of_request(request)  # type: ignore[index]
    found.male[k] = SEXES[request.sex]
    for name, column in found.numbers.items():
        column[k] = getattr(request, name)


def _valid_id(item: object) -> str | None:
    """Of an item with errors, unless the id is one of them."""
    given = item.get(ID) if isinstance(item, dict) else None
    return given if isinstance(given, str) and _is_id(given) else None


def _numbers(column: Column, default: float | None) -> Array:
    """NaN for what is not a number, or is missing."""
    if isinstance(column, np.ndarray):
        return column + 0.0 if default is None else np.where(np.isnan(column), default, column) + 0.0
    if not set(map(type, column)) <= NUMERIC:
        missing = np.nan if default is None else default
        column = [value if type(value) in NUMERIC else missing if value is ABSENT else np.nan for value in column]
    return np.array(column, dtype=np.float64) + 0.0  # turns -0.0 into 0.0, as the schema does


def _are_plausible(numbers: Mapping[str, Array]) -> Mask:
    inside = np.ones(numbers[limits.AGE.field].shape, dtype=bool)
    with np.errstate(all="ignore"):
        for name, values in numbers.items():
            inside &= (values >= NUMBERS[name].low) & (values <= NUMBERS[name].high)  # false for NaN
        bmi = bmi_kg_m2(numbers[limits.HEIGHT.field], numbers[limits.WEIGHT.field])
    inside &= (bmi >= limits.BMI.low * (1.0 + SAFE)) & (bmi <= limits.BMI.high * (1.0 - SAFE))
    grown = limits.DIAMETER_FROM_SCHOOL_AGE
    least = np.where(numbers[limits.AGE.field] >= grown.from_age_years, grown.low, limits.DIAMETER.low)
    inside &= numbers[limits.DIAMETER.field] >= least
    return inside


def _options(columns: Mapping[str, Column], count: int) -> list[Options | None]:
    """Of each row; None: invalid, or too unusual to judge here."""
    given = [name for name in OPTIONS if name in columns]
    if not given:
        return [DEFAULT] * count
    return [
        _cached_options({name: value for name, value in zip(given, values, strict=True) if value is not ABSENT})
        for values in zip(*(columns[name] for name in given), strict=True)
    ]


def _cached_options(given: dict[str, object]) -> Options | None:
    if not given:
        return DEFAULT
    try:
        return _valid_options(marshal.dumps(given, 2))  # unlike equality, it distinguishes 1 from 1.0 and from true
    except ValueError:  # a type that only a table may hold
        return None


@lru_cache(maxsize=1024)
def _valid_options(given: bytes) -> Options | None:
    try:
        return _of_request(parse(ScoreRequest, ANYBODY | marshal.loads(given)))  # noqa: S302 - dumped above
    except InvalidInput:
        return None


def _of_request(request: ScoreRequest) -> Options:
    return _interned(
        Options(
            tuple(request.thresholds),
            request.hdi_probability,
            CONVENTION_INDEX[request.convention.to_convention()],
            request.include_unreliable,
            request.model_version,
        )
    )


@lru_cache(maxsize=4096)
def _interned(options: Options) -> Options:
    return options


DEFAULT = _of_request(ScoreRequest.model_validate(ANYBODY))


@lru_cache(maxsize=1024)
def _is_name(site: str) -> bool:
    return _accepts(SITE, site)


def _is_id(text: str) -> bool:
    return _is_plain(text) or _accepts(ID, text)


def _accepts(field: str, value: str) -> bool:
    try:
        parse(BatchItem, {**ANYBODY, SITE: "SoV", field: value})
    except InvalidInput:
        return False
    return True


def _as_text(site: object) -> str:
    return site if type(site) is str else ""


@cache
def _most_characters() -> int:
    fields = spec(BatchItem).fields
    return int(min(fields[ID].high, fields[SUBJECT].high))


def _is_plain(text: object) -> bool:
    """Certainly valid as an id and as a patient reference: printable text has no control characters."""
    return type(text) is str and 0 < len(text) <= _most_characters() and text.isprintable()
