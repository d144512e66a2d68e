"""What can be wrong with a request, and how it is said: codes for machines, messages for people.

A message names the field, its unit and what is allowed. It never repeats what the caller sent, neither values
nor the names of unknown fields: error bodies end up in logs, and a misplaced name may be a person's.
"""

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar

from pydantic import BaseModel, ValidationError

from app.domain.limits import AGE, BMI, DIAMETER, GIVEN_IN_CM, HEIGHT, WEIGHT, Limit, body_mistakes, diameter_limit
from app.errors import FieldError, InvalidInput
from app.files import has_decimal_comma
from app.schemas.fields import FieldSpec, spec
from app.schemas.requests import CURRENT, StudyRequest

NOT_JSON = {
    "empty_body": "the body is empty",
    "wrong_encoding": "the body is not UTF-8, or begins with a byte order mark",
    "syntax": "the body is not JSON",
    "not_finite": "NaN and Infinity are not JSON",
    "number_too_large": "a number is too large for a double",
    "duplicate_key": "an object names the same key twice, so it has two meanings",
    "lone_surrogate": "a string contains an unpaired surrogate",
    "too_deep": "arrays and objects are nested too deeply",
}
NOT_ACCEPTABLE = {
    "missing": "a required field is missing",
    "unknown_field": "an object has unknown fields; they are counted, not named",
    "wrong_type": "the field has the wrong JSON type (a number in quotes is a string, true is not a number)",
    "out_of_range": "the number is outside its allowed range",
    "not_a_choice": "the string is not one of the choices",
    "too_short": "the string is empty, or the array has too few elements",
    "too_long": "the string or the array is too long",
    "control_character": "the string contains a control character",
    "implausible_bmi": "height and weight give a body mass index outside its allowed range",
    "duplicate_site": "the study measures a site twice",
    "unknown_site": "no model is published for the site of a measurement",
    "unknown_version": "the site of a measurement has no such model version",
}
# Rejected for its range or its body mass index, and one mistake explains it. Never corrected: the caller decides.
UNIT_MISTAKES = {
    "given_in_cm": "a diameter that looks as if it were given in cm",
    "given_in_m": "a height that looks as if it were given in m",
    "given_in_inches": "a height that looks as if it were given in inches",
    "given_in_feet": "a height that looks as if it were given in feet",
    "given_in_feet_and_pounds": "a height and a weight that look as if they were given in feet and pounds",
    "given_in_pounds": "a weight that looks as if it were given in pounds",
    "given_in_inches_and_pounds": "a height and a weight that look as if they were given in inches and pounds",
    "height_weight_exchanged": "a height and a weight that fit only when exchanged",
}
# Of one row of a file or one item of a batch; the others are scored all the same.
ROWS = {
    "ragged_row": "the row has more or fewer cells than the header",
    "version_refused": "the model version of the row is published but cannot be used",
    "numbers_not_trusted": "the solver could not verify its own answer for this row, so none is given",
}
CODES = NOT_JSON | NOT_ACCEPTABLE | UNIT_MISTAKES | ROWS
if TYPE_CHECKING:
    ErrorCode = str
else:
    ErrorCode = Literal[tuple(CODES)]  # an enumeration in the OpenAPI document

# Every other type of error that pydantic may report for these models is a wrong type.
CODE_OF_TYPE = {
    "missing": "missing",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
    "out_of_range": "out_of_range",
    "literal_error": "not_a_choice",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "string_pattern_mismatch": "control_character",
    "too_short": "too_short",
    "too_long": "too_long",
    "implausible_bmi": "implausible_bmi",
}
FROM_FASTAPI = ("body",)  # what it puts before the location of every error in a body

ABSENT = object()
COMMA_HINT = " Write a decimal point, not a comma."
MAX_COMPARED, MAX_COMPARED_LENGTH = 8, 64  # unknown names that are compared with ours: the time for it stays bounded
CHOOSE_SEX = "; choose the sex of the reference group to compare with"

Location = tuple[int | str, ...]
Errors = Sequence[Mapping[str, Any]]
Model = TypeVar("Model", bound=BaseModel)


def field_error(code: str, field: str, message: str) -> FieldError:
    """An error with a code that is in the table; another is a defect and raises KeyError."""
    if code not in CODES:
        raise KeyError(code)
    return FieldError(code, field, message)


def unknown_site(measurement: int) -> FieldError:
    """For a study that names a site without a model."""
    field = f"measurements[{measurement}].site"
    return field_error("unknown_site", field, f"{field} has no published model; GET /v1/sites lists the sites.")


def unknown_version(measurement: int) -> FieldError:
    field = f"measurements[{measurement}].model_version"
    message = f"{field} is not published for the site; GET /v1/models lists the versions."
    return field_error("unknown_version", field, message)


def named_models(study: object, errors: Iterable[FieldError]) -> Iterator[tuple[int, str, str]]:
    """Index, site and version of the measurements of a study with these errors, as far as the names are valid."""
    invalid = {error.field for error in errors if error.code != "duplicate_site"}
    for index in range(int(spec(StudyRequest).fields["measurements"].high)):
        at = ("measurements", index)
        site, version = (_value(study, (*at, name)) for name in ("site", "model_version"))
        if isinstance(site, str) and dotted((*at, "site")) not in invalid:
            is_named = isinstance(version, str) and dotted((*at, "model_version")) not in invalid
            yield index, site, version if is_named else CURRENT


def parse(model: type[Model], body: object) -> Model:
    """The validated request, or InvalidInput with every error of the body."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise InvalidInput(field_errors(model, _details(error), body)) from None


def field_errors(model: type[BaseModel], errors: Errors, body: object) -> list[FieldError]:
    """What pydantic found wrong with `body`, in the order of the model's fields, unknown ones first.

    `errors` come from `ValidationError.errors()` or from FastAPI's RequestValidationError.
    """
    found = [(_location(error), str(error["type"])) for error in errors]
    if not isinstance(body, dict) or any(not location for location, _ in found):
        return [_not_an_object(spec(model), "")]
    found += _errors_within_long_arrays(model, found, body)
    report = _Report(spec(model), body)
    report.add_unknown([location for location, kind in found if kind == "extra_forbidden"])
    for location, kind in found:
        if kind not in ("extra_forbidden", "duplicate_site"):
            report.add(location, kind)
    report.add_duplicate_sites()
    report.add_small_diameters({location for location, _ in found})
    return report.sorted()


class _Report:
    """The errors of one body with their locations, by which they are sorted at the end."""

    def __init__(self, root: FieldSpec, body: Mapping[str, Any]) -> None:
        self._root, self._body = root, body
        self._found: list[tuple[Location, FieldError]] = []

    def sorted(self) -> list[FieldError]:
        return [error for _, error in sorted(self._found, key=lambda found: self._position(found[0]))]

    def add(self, location: Location, kind: str) -> None:
        field, value = self._field(location), _value(self._body, location)
        code = "missing" if value is ABSENT else CODE_OF_TYPE.get(kind, "wrong_type")
        if (code == "not_a_choice" and not isinstance(value, str)) or value != value:  # NaN does not equal itself
            code = "wrong_type"
        if code in ("out_of_range", "implausible_bmi"):
            self._add_out_of_range(location, field, code)
            return
        path = dotted(location)
        if field.kind == "object" and code == "wrong_type":
            self._found.append((location, _not_an_object(field, path)))
            return
        verb = "is required:" if code == "missing" else "must be"
        hint = COMMA_HINT if field.kind == "number" and isinstance(value, str) and has_decimal_comma(value) else ""
        self._found.append((location, field_error(code, path, f"{path} {verb} {rule(field)}.{hint}")))

    def _add_out_of_range(self, location: Location, field: FieldSpec, code: str) -> None:
        """With the unit mistake that would explain the number; one that is the only explanation gives its code."""
        path = dotted(location)
        message = f"{path} must be {rule(field)}."
        if field.name == DIAMETER.field:
            limit = diameter_limit(_number(self._person(location), AGE))
            since = f" from age {limit.from_age_years:g} on" if limit.from_age_years else ""
            message = f"{path} must be a number {span(limit)}{since}."
            if 0.0 < _value(self._body, location) < limit.low:
                code, message = GIVEN_IN_CM, f"{message} Was it given in cm?"
        elif field.name in (HEIGHT.field, WEIGHT.field):
            person = self._person(location)
            height_cm, weight_kg = _number(person, HEIGHT), _number(person, WEIGHT)
            mistakes = body_mistakes(height_cm, weight_kg)
            if not mistakes and code == "out_of_range":  # nothing explains both, but perhaps this one by itself
                alone = (height_cm, math.nan) if field.name == HEIGHT.field else (math.nan, weight_kg)
                mistakes = body_mistakes(*alone)
            if code == "implausible_bmi":
                message = f"{HEIGHT.field} and {WEIGHT.field} must give a body mass index {span(BMI)}."
                location = (*location[:-1], mistakes[0].field if len(mistakes) == 1 else location[-1])
                path = dotted(location)
            code = mistakes[0].code if len(mistakes) == 1 else code
            message = " ".join([message, *(mistake.question for mistake in mistakes)])
        self._found.append((location, field_error(code, path, message)))

    def add_unknown(self, locations: Iterable[Location]) -> None:
        """One error for each object, which counts its unknown fields."""
        for location in dict.fromkeys(location[:-1] for location in locations):
            known, given = self._field(location).fields, _value(self._body, location)
            unknown = [name for name in given if name not in known]
            count = "1 unknown field" if len(unknown) == 1 else f"{len(unknown)} unknown fields"
            where = f" in {dotted(location)}" if location else ""
            hint = _misplaced(given, known) or did_you_mean(unknown, [name for name in known if name not in given])
            message = f"{count}{where}.{hint} Allowed fields: {', '.join(known)}."
            at = (*location, "(unknown)")
            self._found.append((at, field_error("unknown_field", dotted(at), message)))

    def add_duplicate_sites(self) -> None:
        """Looked for in the body itself, so that they are found even where other fields are wrong."""
        field = self._root.fields.get("measurements")
        if field is None:
            return
        seen: set[str] = set()
        for index in range(int(field.high)):
            site = _value(self._body, at := ("measurements", index, "site"))
            if isinstance(site, str) and site in seen:
                message = f"{dotted(at)} was given before; give each site once."
                self._found.append((at, field_error("duplicate_site", dotted(at), message)))
            elif isinstance(site, str) and site:
                seen.add(site)

    def add_small_diameters(self, reported: Set[Location]) -> None:
        """Diameters too small for an age that is itself too high: the validators, which see valid ages only, miss them.

        An age above its range is above the age from which the larger minimum applies, whatever was meant.
        """
        for location in self._diameters():
            value, age_years = _value(self._body, location), _number(self._person(location), AGE)
            if not age_years > AGE.high or location in reported or not _is_number(value):
                continue
            if DIAMETER.holds(value) and not diameter_limit(age_years).holds(value):
                self._add_out_of_range(location, self._field(location), "out_of_range")

    def _diameters(self) -> Iterator[Location]:
        """Of the body, and of the measurements or visits in its arrays."""
        for name, field in self._root.fields.items():
            if name == DIAMETER.field:
                yield (name,)
            elif field.element and DIAMETER.field in field.element.fields:
                yield from ((name, index, DIAMETER.field) for index in range(int(field.high)))

    def _person(self, location: Location) -> Mapping[str, Any]:
        """The object that holds the age and the body size of a field's patient: a visit, or the body."""
        own = _value(self._body, location[:-1])
        return own if isinstance(own, dict) and AGE.field in self._field(location[:-1]).fields else self._body

    def _field(self, location: Location) -> FieldSpec:
        field = self._root
        for step in location:
            field = field.fields[step] if isinstance(step, str) else field.element or field
        return field

    def _position(self, location: Location) -> tuple[int, ...]:
        """Unknown fields before the known ones of the same object."""
        position: list[int] = []
        for depth, step in enumerate(location):
            names = list(self._field(location[:depth]).fields)
            position.append(step if isinstance(step, int) else names.index(step) if step in names else -1)
        return tuple(position)


def rule(field: FieldSpec) -> str:
    """What is allowed, to follow "must be" or "is required:"."""
    if field.kind == "number":
        return f"a number {span(field.limit)}"
    if field.kind == "text":
        return f"a string of {field.low:g} to {field.high:g} characters without control characters"
    if field.kind == "choice":
        quoted = [f'"{choice}"' for choice in field.choices]
        return f"{', '.join(quoted[:-1])} or {quoted[-1]}{CHOOSE_SEX if field.name == 'sex' else ''}"
    if field.element is not None:
        return f"an array of {field.low:g} to {field.high:g} {field.element.kind}s"
    return "true or false" if field.kind == "flag" else f"an object with the fields {', '.join(field.fields)}"


def span(limit: Limit) -> str:
    return f"from {limit.low:g} to {limit.high:g} ({limit.unit})"


def dotted(location: Iterable[int | str]) -> str:
    """measurements[1].diameter_mm"""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")


def did_you_mean(unknown: Iterable[str], known: Sequence[str]) -> str:
    """A hint made of our own names alone: what the caller wrote is never repeated."""
    meant = dict.fromkeys(name for word in islice(unknown, MAX_COMPARED) for name in _nearest(word.lower(), known))
    return f" Did you mean {', '.join(meant)}?" if meant else ""


def _nearest(word: str, known: Sequence[str]) -> list[str]:
    if len(word) > MAX_COMPARED_LENGTH:
        return []
    begun = [name for name in known if word and name.startswith(f"{word}_")]  # age: too short to be like age_years
    return begun[:1] or difflib.get_close_matches(word, known, n=1)


def _misplaced(given: Mapping[str, Any], known: Mapping[str, FieldSpec]) -> str:
    """A hint where a single measurement was sent as a study."""
    for field in known.values():
        inner = field.element.fields if field.element is not None else {}
        if any(name in given for name in inner if name not in known):
            return f" Each element of {field.name} takes {', '.join(inner)}."
    return ""


def _not_an_object(field: FieldSpec, path: str) -> FieldError:
    return field_error("wrong_type", path, f"{path or 'The body'} must be {rule(field)}.")


def _errors_within_long_arrays(
    model: type[BaseModel], found: Iterable[tuple[Location, str]], body: Mapping[str, Any]
) -> list[tuple[Location, str]]:
    """Pydantic does not look into an array that is too long: what is wrong with as many elements as are allowed."""
    long = [location[0] for location, kind in found if kind == "too_long" and len(location) == 1]
    if not long:
        return []
    shorter = {**body, **{name: body[name][: int(spec(model).fields[name].high)] for name in map(str, long)}}
    try:
        model.model_validate(shorter)
    except ValidationError as error:
        again = [(_location(one), str(one["type"])) for one in _details(error)]
        return [(location, kind) for location, kind in again if location and location[0] in long]
    return []


def _details(error: ValidationError) -> Errors:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _location(error: Mapping[str, Any]) -> Location:
    location: Location = tuple(error["loc"])
    return location[1:] if location[:1] == FROM_FASTAPI else location


def _value(body: Any, location: Location) -> Any:
    for step in location:
        try:
            body = body[step]
        except (LookupError, TypeError):
            return ABSENT
    return body


def _number(body: Mapping[str, Any], limit: Limit) -> float:
    """NaN: missing, or not a number."""
    value = body.get(limit.field)
    return value if _is_number(value) else math.nan


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
