"""The codes of what can be wrong with a request. Machines branch on them; people read the message beside.

A message names the field, its unit and what is allowed. It never repeats what the caller sent, neither values
nor the names of unknown fields: error bodies end up in logs, and a misplaced name may be a person's.
"""

from app.errors import FieldError

NOT_JSON = {
    "empty_body": "the body is empty",
    "wrong_encoding": "the body is not UTF-8, or begins with a byte order mark",
    "syntax": "the body is not JSON",
    "not_finite": "NaN and Infinity are not JSON",
    "number_too_large": "a number is too large for a double",
    "duplicate_key": "an object names the same key twice, so it has two meanings",
    "lone_surrogate": "a text holds half of a surrogate pair, which is no character",
    "too_deep": "arrays and objects are nested too deeply",
}
NOT_ACCEPTABLE = {
    "missing": "a required field is not there",
    "unknown_field": "an object has fields that are not known there; they are counted, not named",
    "wrong_type": "the field is of another JSON type (a number in quotes is a text, true is not a number)",
    "out_of_range": "the number is outside its allowed range",
    "not_a_choice": "the text is none of the choices",
    "too_short": "the text is empty, or the array has too few elements",
    "too_long": "the text or the array is too long",
    "control_character": "the text holds a control character",
    "implausible_bmi": "height and weight give a body mass index outside its allowed range",
    "duplicate_site": "the study measures a site twice",
    "unknown_site": "no model is published for the site of a measurement",
    "unknown_version": "the site of a measurement has no such model version",
}
# Refused for its range or its body mass index, and one slip explains it. Never corrected: the caller decides.
SLIPS = {
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
CODES = NOT_JSON | NOT_ACCEPTABLE | SLIPS | ROWS


def fault(code: str, field: str, message: str) -> FieldError:
    """A fault with a code that is in the table; another is a defect and raises KeyError."""
    if code not in CODES:
        raise KeyError(code)
    return FieldError(code, field, message)


def unknown_site(measurement: int) -> FieldError:
    """For the service, which alone knows the sites, when a study names one that has no model."""
    field = f"measurements[{measurement}].site"
    return fault("unknown_site", field, f"{field} has no published model; GET /v1/sites lists the sites.")


def unknown_version(measurement: int) -> FieldError:
    field = f"measurements[{measurement}].model_version"
    return fault("unknown_version", field, f"{field} is not published for the site; GET /v1/models lists the versions.")
