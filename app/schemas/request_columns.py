"""Validate a block of requests as columns: accept fast, reject slowly.

Vectorised checks find the rows that are certainly valid. Every other row is validated by pydantic, as a single request
is: that writes the error messages, and accepts what is valid in an unusual way. Nothing is defined here: ranges come
from the schema of the request, and the combination of options that rows share is validated once by pydantic itself.
"""

import marshal
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import repeat
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.domain import limits
from app.domain.patient import bmi_kg_m2
from app.domain.query import CONVENTION_INDEX
from app.errors import FieldError, InvalidInput
from app.schemas.fields import spec
from app.schemas.requests import (
    CURRENT,
    BatchItem,
    DiameterFields,
    PatientFields,
    ScoreRequest,
)
from app.schemas.validation import parse

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Column = Sequence[object] | Array
T = TypeVar("T", bound=Hashable)

ID, SITE, SEX, SUBJECT, VERSION = "id", "site", "sex", "subject", "model_version"
MEASURED = PatientFields.model_fields | DiameterFields.model_fields
NUMBERS = {name: field for name, field in spec(ScoreRequest).fields.items() if name in MEASURED and name != SEX}
OPTIONS = tuple(name for name in ScoreRequest.model_fields if name not in MEASURED and name != SUBJECT)
KNOWN = frozenset(BatchItem.model_fields)
NUMERIC = frozenset({float, int})
SEXES = {choice: choice == "male" for choice in spec(ScoreRequest).fields[SEX].choices}
SAFE = 1e-9  # a body mass index within this share of its limits is left to pydantic, whose last digit may differ
MARSHAL_VERSION = 2  # without references: equal values give equal texts
NOT_MARSHALLED = b""
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


class Coded(Generic[T]):
    """A column in which few values are distinct: each of them once, and for every row the index of its value."""

    def __init__(self, values: Iterable[T], codes: NDArray[np.intp]) -> None:
        """Values that are equal get one code."""
        given = list(values)
        self._code = {value: k for k, value in enumerate(dict.fromkeys(given))}
        self.values = list(self._code)
        merged = np.array([self._code[value] for value in given], dtype=np.intp)
        self.codes: NDArray[np.intp] = codes if len(given) == len(self.values) else merged[codes]

    @classmethod
    def of(cls, column: Sequence[T]) -> "Coded[T]":
        code = {value: k for k, value in enumerate(dict.fromkeys(column))}
        return cls(code, np.fromiter(map(code.__getitem__, column), np.intp, len(column)))

    def __getitem__(self, row: int) -> T:
        return self.values[int(self.codes[row])]

    def __setitem__(self, row: int, value: T) -> None:
        code = self._code.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        self.codes[row] = code

    def __iter__(self) -> Iterator[T]:
        return map(self.values.__getitem__, self.codes.tolist())

    def __len__(self) -> int:
        return self.codes.size


@dataclass(frozen=True, slots=True, eq=False)
class RequestColumns:
    """N requests, each valid or with its errors. Of a row with errors the other columns mean nothing."""

    ids: list[str | None]
    sites: Coded[str]
    subjects: list[str]  # empty: not given
    options: Coded[Options]
    numbers: Mapping[str, Array]  # age, body size, diameter and its error (0: not stated), by the names of the fields
    male: Mask
    errors: dict[int, tuple[FieldError, ...]]
    named: dict[int, tuple[str, str]]  # of rows with errors: site and model version, as far as these are valid

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
    sexes = _sexes(columns.get(SEX, nothing))
    options, certain = _options(columns, count)
    sites = Coded.of(_texts(columns.get(SITE, nothing), ""))
    certain &= np.array([_is_name(site) for site in sites.values], dtype=bool)[sites.codes]
    certain &= _are_plausible(numbers) & (sexes >= 0)
    for name in (ID, SUBJECT):
        if name in columns:
            certain &= _are_plain(columns[name])
    certain[list(odd)] = False
    found = RequestColumns(
        _texts(columns.get(ID, nothing), None),
        sites,
        _texts(columns.get(SUBJECT, nothing), ""),
        options,
        numbers,
        sexes > 0,
        {},
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
        found.ids[k] = _valid_id(item)
        if named := _named_model(item):
            found.named[k] = named
        return
    found.ids[k], found.sites[k], found.subjects[k] = request.id, request.site, request.subject
    found.options[k] = _of_request(request)
    found.male[k] = SEXES[request.sex]
    for name, column in found.numbers.items():
        column[k] = getattr(request, name)


def _valid_id(item: object) -> str | None:
    """Of an item with errors, unless the id is one of them."""
    given = item.get(ID) if isinstance(item, dict) else None
    return given if isinstance(given, str) and _is_id(given) else None


def _named_model(item: object) -> tuple[str, str] | None:
    """Of an item with errors: its site, if that is none of them, and its version."""
    given = item if isinstance(item, dict) else {}
    site, version = given.get(SITE), given.get(VERSION)
    if not (isinstance(site, str) and _is_name(site)):
        return None
    return site, version if isinstance(version, str) and _is_name(version) else CURRENT


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


def _sexes(column: Column) -> NDArray[np.intp]:
    """1: male, 0: female, -1: neither."""
    if set(map(type, column)) != {str}:
        column = [sex if type(sex) is str else "" for sex in column]
    return np.fromiter(map(SEXES.get, column, repeat(-1)), np.intp, len(column))


def _texts(column: Column, missing: Any) -> list[Any]:
    """Of each row; `missing` for what is no text."""
    if set(map(type, column)) == {str}:
        return list(column)
    return [text if type(text) is str else missing for text in column]


def _options(columns: Mapping[str, Column], count: int) -> tuple[Coded[Options], Mask]:
    """Of each row, and which are certainly valid. Those of the other rows mean nothing."""
    given = tuple(name for name in OPTIONS if name in columns)
    if not given:
        return Coded((DEFAULT,), np.zeros(count, dtype=np.intp)), np.ones(count, dtype=bool)
    rows = Coded.of(list(zip(*(_marshalled(columns[name]) for name in given), strict=True)))
    options = [_valid_options(given, texts) for texts in rows.values]
    valid = np.array([choice is not None for choice in options], dtype=bool)
    return Coded([choice or DEFAULT for choice in options], rows.codes), valid[rows.codes]


def _marshalled(column: Column) -> list[bytes | None]:
    """Each value as text, which unlike equality distinguishes 1 from 1.0 and from true; None for an absent one."""
    values: Sequence[Any] = column if not isinstance(column, np.ndarray) else _present(column)
    try:
        return list(map(marshal.dumps, values, repeat(MARSHAL_VERSION)))
    except ValueError:  # one is absent, or of a type that only a table may hold
        return [None if value is ABSENT else _marshalled_value(value) for value in values]


def _present(column: Array) -> list[Any]:
    return [ABSENT if np.isnan(value) else value for value in column.tolist()]


def _marshalled_value(value: Any) -> bytes:
    try:
        return marshal.dumps(value, MARSHAL_VERSION)
    except ValueError:
        return NOT_MARSHALLED


@lru_cache(maxsize=1024)
def _valid_options(names: tuple[str, ...], texts: tuple[bytes | None, ...]) -> Options | None:
    """None: invalid, or too unusual to judge here."""
    if NOT_MARSHALLED in texts:
        return None
    given = {name: marshal.loads(text) for name, text in zip(names, texts, strict=True) if text}  # noqa: S302 - ours
    try:
        return _of_request(parse(ScoreRequest, ANYBODY | given))
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
def _is_name(text: str) -> bool:
    return _accepts(SITE, text)


def _is_id(text: str) -> bool:
    return _is_plain(text) or _accepts(ID, text)


def _accepts(field: str, value: str) -> bool:
    try:
        parse(BatchItem, {**ANYBODY, SITE: "SoV", field: value})
    except InvalidInput:
        return False
    return True


@cache
def _most_characters() -> int:
    fields = spec(BatchItem).fields
    return int(min(fields[ID].high, fields[SUBJECT].high))


def _are_plain(texts: Column) -> Mask:
    """Which are certainly valid, or absent. The texts are looked at together first, which takes less time."""
    if set(map(type, texts)) == {str}:
        lengths = set(map(len, texts))
        if min(lengths) > 0 and max(lengths) <= _most_characters() and "".join(texts).isprintable():  # type: ignore[arg-type]
            return np.ones(len(texts), dtype=bool)
    return np.array([text is ABSENT or _is_plain(text) for text in texts], dtype=bool)


def _is_plain(text: object) -> bool:
    """Certainly valid as an id and as a patient reference: printable text has no control characters."""
    return type(text) is str and 0 < len(text) <= _most_characters() and text.isprintable()
