"""The fields of a request model as plain data, read from its JSON Schema.

Messages, table columns, command-line options and `GET /v1/limits` are derived from this, so that a field is
described once, where it is validated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel

from app.domain import limits as domain
from app.domain.limits import Limit
from app.schemas.requests import (
    UNIT,
    BatchRequest,
    ChartRequest,
    MeasurementFields,
    OptionFields,
    PatientFields,
    StudyRequest,
)

Json = Mapping[str, Any]
Kind = Literal["number", "text", "choice", "flag", "array", "object"]
KINDS: dict[str, Kind] = {
    "number": "number",
    "integer": "number",
    "string": "text",
    "boolean": "flag",
    "array": "array",
    "object": "object",
}
ENDS = {"number": ("minimum", "maximum"), "text": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}

# Ranges that concern two fields, each listed after the field that carries its validator.
CROSS_FIELD = {"weight_kg": domain.BMI, "diameter_mm": domain.DIAMETER_FROM_SCHOOL_AGE}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field. `low` and `high` limit a number, the length of a text or the count of an array."""

    name: str  # of an element: that of its array and []
    kind: Kind
    required: bool
    description: str
    unit: str
    low: float
    high: float
    default: Any  # None: there is none, or it is not a plain value
    choices: tuple[str, ...]
    element: "FieldSpec | None"  # of an array
    fields: Mapping[str, "FieldSpec"]  # of an object

    @property
    def limit(self) -> Limit:
        default = len(self.default) if isinstance(self.default, list) else self.default
        return Limit(self.name, self.unit, self.low, self.high, default)


@cache
def spec(model: type[BaseModel]) -> FieldSpec:
    """The body of a request as one object."""
    schema = model.model_json_schema()
    return _spec("", schema, schema.get("$defs", {}), required=True)


def leaves(fields: Iterable[FieldSpec], path: str = "") -> Iterator[tuple[str, FieldSpec]]:
    """Every field that is not an object, with its dotted path: convention.edge."""
    for field in fields:
        if field.kind == "object":
            yield from leaves(field.fields.values(), f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", field


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request from values by dotted path: the inverse of `leaves`."""
    body: dict[str, Any] = {}
    for path, value in values.items():
        parent, _, name = path.rpartition(".")
        (body.setdefault(parent, {}) if parent else body)[name] = value
    return body


@cache
def request_limits() -> tuple[Limit, ...]:
    """Every allowed range, required fields first and counts last, then the advisory ones."""
    parts = (PatientFields, OptionFields, MeasurementFields, StudyRequest)
    fields = {name: field for part in parts for name, field in spec(part).fields.items()}
    fields["visits"] = spec(ChartRequest).fields["visits"]  # the others of a chart are those of a score
    fields["items"] = spec(BatchRequest).fields["items"]
    numbers = [number for field in fields.values() for number in _numbers(field)]
    counts = [field.limit for field in fields.values() if field.kind != "number" and field.unit]
    return (*sorted(numbers, key=lambda limit: limit.default is not None), *counts, *domain.ADVISORY)


@cache
def request_choices() -> Mapping[str, tuple[str, ...]]:
    parts = (PatientFields, MeasurementFields, OptionFields)
    fields = [field for part in parts for _, field in leaves(spec(part).fields.values())]
    return {field.name: field.choices for field in fields if field.choices}


def _numbers(field: FieldSpec) -> Sequence[Limit]:
    number = field.element if field.kind == "array" else field
    if number is None or number.kind != "number":
        return ()
    return [number.limit, *([CROSS_FIELD[field.name]] if field.name in CROSS_FIELD else [])]


def _spec(name: str, schema: Json, definitions: Json, *, required: bool) -> FieldSpec:
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **schema}
    if "type" not in schema:
        raise TypeError(f"{name}: a field has one type; leave out `| None` and use default_factory=_not_stated.")
    kind: Kind = "choice" if "enum" in schema else KINDS[schema["type"]]
    if kind in ENDS and not set(ENDS[kind]) <= schema.keys():
        raise TypeError(f"{name}: give the field a smallest and a largest value or length, which its messages name.")
    low, high = (schema.get(end, 0) for end in ENDS.get(kind, ("", "")))
    element = _spec(f"{name}[]", schema["items"], definitions, required=True) if kind == "array" else None
    default = schema.get("default")
    if element and isinstance(default, list) and len(default) == 1:
        element = replace(element, default=default[0])
    return FieldSpec(
        name=name,
        kind=kind,
        required=required,
        description=schema.get("description", ""),
        unit=schema.get(UNIT, ""),
        low=low,
        high=high,
        default=default,
        choices=tuple(schema.get("enum", ())),
        element=element,
        fields={
            part: _spec(part, one, definitions, required=part in schema.get("required", ()))
            for part, one in schema.get("properties", {}).items()
        },
    )
