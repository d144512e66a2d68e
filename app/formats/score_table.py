"""A file of many patients: measurements as flat rows, and their scores as flat rows.

The columns of a measurement are the fields of the single request, `site` and an optional `id`; an object takes a
column for each of its parts (`convention.edge` and so on), an array one cell (`2;3`). A row of scores always has the
same columns in the same order. A row without a score says why.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from app.errors import FieldError, InvalidTable
from app.files import decimal_number
from app.formats.table_files import RAGGED, Cells, Column, Columns
from app.schemas.fields import FieldSpec, leaves, nested, spec
from app.schemas.request_columns import ABSENT, ID, SITE, SUBJECT, RequestColumns, validate_columns
from app.schemas.request_columns import Column as Values
from app.schemas.requests import ScoreRequest
from app.schemas.validation import did_you_mean, field_error

CELL_SEPARATOR = ";"  # elements of one cell
RAGGED_ROW = "The row does not have as many cells as the header. Is there a decimal comma where a point is needed?"
OTHER_SEPARATORS = (CELL_SEPARATOR, "\t")
OTHER_SEPARATOR = (
    "The columns are separated by semicolons or tabs: save the file with commas between the columns, and with points "
    "in the numbers."
)

FIELDS = dict(leaves(spec(ScoreRequest).fields.values()))  # by the names of their columns
KNOWN = (ID, SITE, *FIELDS)
REQUIRED = tuple(name for name, field in FIELDS.items() if field.required)
REFERENCES = (ID, SUBJECT)  # the caller's own: taken exactly, while spaces around other cells do not count
FLAGS = {"true": True, "false": False}
TEXTS = ("text", "choice")  # kinds of fields that hold texts, as id and site do
NOT_TEXT = (
    "Column {} must contain text or whole numbers: floating-point numbers, dates and other values have no exact text. "
    "Save the column as text where the file was made."
)
# By the types of cells. Not of floats: one that identifies a patient may have lost digits before it came here.
EXACT_TEXT: Mapping[type, Callable[[Any], str]] = {str: str, int: str, Decimal: "{:f}".format}


def check_columns(names: Iterable[str], default_site: str | None) -> None:
    """Raises InvalidTable for unknown, missing or repeated columns, before any row is scored."""
    found = list(names)
    if len(found) == 1 and any(separator in found[0] for separator in OTHER_SEPARATORS):
        raise InvalidTable([OTHER_SEPARATOR])
    needed = REQUIRED if default_site else (*REQUIRED, SITE)
    problems = [f"Column {name} is missing." for name in needed if name not in found]
    absent = [name for name in KNOWN if name not in found]
    problems += [_not_known(name, absent) for name in dict.fromkeys(found) if name not in KNOWN]
    problems += [f"Column {name} appears twice." for name in KNOWN if found.count(name) > 1]
    if problems:
        raise InvalidTable([*problems, f"Known are {', '.join(KNOWN)}."])


def _not_known(name: str, absent: list[str]) -> str:
    if not name:
        return "A column has no name in the header. Leave row numbers out of the file."
    return f"Column {name} is not known.{did_you_mean([name], absent)}"


def validate_table(columns: Columns, default_site: str | None = None) -> RequestColumns:
    """The requests in columns whose names were checked. An empty cell is a field that was not given.

    Raises InvalidTable for columns of texts that hold something else.
    """
    count = len(next(iter(columns.values())))
    cells = _checked({name: column for name, column in columns.items() if name != RAGGED})
    if default_site:
        cells[SITE] = [default_site if site is ABSENT else site for site in cells.get(SITE, [ABSENT] * count)]

    def item(row: int) -> dict[str, Any]:
        given = ((name, _cell_of(column, row)) for name, column in cells.items())
        return nested({name: cell for name, cell in given if cell is not ABSENT})

    fields = {name: column for name, column in cells.items() if "." not in name}
    for parent in {name.partition(".")[0] for name in cells} - fields.keys():
        fields[parent] = _objects({name: column for name, column in cells.items() if name.startswith(f"{parent}.")})
    requests = validate_columns(fields, count, item)
    for row, ragged in enumerate(columns.get(RAGGED, ())):
        if ragged is not None:
            requests.errors[row] = (field_error("ragged_row", "", RAGGED_ROW),)
            requests.named.pop(row, None)  # the cells may be those of other columns
    return requests


def _checked(columns: Columns) -> dict[str, Values]:
    cells: dict[str, Values] = {}
    problems: list[str] = []
    for name, column in columns.items():
        field = FIELDS.get(name)
        try:
            cells[name] = _texts(name, column) if field is None or field.kind in TEXTS else _values(field, column)
        except KeyError:
            problems.append(NOT_TEXT.format(name))
    if problems:
        raise InvalidTable(problems)
    return cells


def _texts(name: str, column: Cells) -> list[object]:
    """Raises KeyError for a cell that has no exact text."""
    cells = _plain(column) if name in REFERENCES else _trimmed(_plain(column))
    if "" not in cells and set(map(type, cells)) == {str}:
        return list(cells)
    return [ABSENT if cell is None or cell == "" else EXACT_TEXT[type(cell)](cell) for cell in cells]


def _values(field: FieldSpec, column: Cells) -> Values:
    if isinstance(column, np.ndarray) and field.kind == "number":
        return column.astype(np.float64, copy=False)
    return [ABSENT if cell is None or cell == "" else _value(field, cell) for cell in _trimmed(_plain(column))]


def _plain(column: Cells) -> Sequence[object]:
    """Without arrays, in which None cannot be."""
    if not isinstance(column, np.ndarray):
        return column
    cells: list[object] = column.tolist()
    return [None if cell != cell else cell for cell in cells] if column.dtype.kind == "f" else cells


def _cell_of(column: Values, row: int) -> object:
    if isinstance(column, np.ndarray):
        number = float(column[row])
        return ABSENT if np.isnan(number) else number
    return column[row]


def _objects(parts: Mapping[str, Values]) -> list[object]:
    """The columns of one object, such as convention.edge and convention.phase, as a column of objects.

    Rows with the same cells share theirs: most rows of a table do.
    """
    made: dict[str, object] = {}
    found = []
    for cells in zip(*parts.values(), strict=True):
        key = repr(cells)
        if key not in made:
            given = {name: cell for name, cell in zip(parts, cells, strict=True) if cell is not ABSENT}
            made[key] = next(iter(nested(given).values()), ABSENT)
        found.append(made[key])
    return found


def _trimmed(cells: Sequence[object]) -> list[object]:
    return [cell.strip() if isinstance(cell, str) else cell for cell in cells]


def _value(field: FieldSpec, cell: object) -> object:
    """Text becomes what the field holds. What cannot is left unchanged, for validation to report."""
    if field.element is not None:
        parts = [part.strip() for part in cell.split(CELL_SEPARATOR)] if isinstance(cell, str) else [cell]
        return cell if isinstance(cell, list) else [_value(field.element, part) for part in parts]
    if isinstance(cell, str) and field.kind == "flag":
        return FLAGS.get(cell.lower(), cell)
    if isinstance(cell, str) and field.kind == "number":
        number = decimal_number(cell)
        return cell if number is None else number
    return cell


COLUMNS = (
    Column("index", "integer", "the row, 0 being the first below the header; blank lines do not count"),
    Column("id", "text", "as it was given"),
    Column("site", "text", "as it was given"),
    Column("model_version", "text", "the version that answered"),
    Column("model_sha256", "text", "its digest"),
    Column("cohort", "text", "the people that it was trained on; `simulated`: for evaluation, not for care"),
    Column("expected_ns", "number", "the expected normalcy score"),
    Column("hdi_probability", "number", "of the interval"),
    Column("hdi_low", "number", "lower end of the highest-density interval of NS"),
    Column("hdi_high", "number", "its upper end"),
    Column("hdi_width", "number", "its width"),
    Column("position", "text", "above_2, below_minus_2, within, uncertain, or not_assessed"),
    Column("thresholds", "text", "as they were asked for"),
    Column("probability_above", "text", "P(NS > t) for each threshold"),
    Column("probability_below", "text", "P(NS < t) for each threshold"),
    Column("error_free_hdi_low", "number", "interval of the error-free diameter, where measurement_sd_mm was given"),
    Column("error_free_hdi_high", "number", "its upper end"),
    Column("error_free_probability_above", "text", "P(NS > t) of the error-free diameter for each threshold"),
    Column("error_free_probability_below", "text", "P(NS < t) of the error-free diameter for each threshold"),
    Column("expected_diameter_mm", "number", "of healthy people like this one"),
    Column("expected_diameter_sd_mm", "number", "how well that is known"),
    Column("aleatoric_sd_mm", "number", "how much healthy people like this one differ"),
    Column("aleatoric_sd_log_se", "number", "how well that is known, as a log"),
    Column("interval_low_mm", "number", "lower end of the central 95% predictive interval"),
    Column("interval_high_mm", "number", "its upper end"),
    Column("percentile", "number", "of the diameter among healthy people like this one"),
    Column("diameter_at_threshold_median_mm", "text", "the diameter whose score is t, for each threshold"),
    Column("diameter_at_threshold_low_mm", "text", "its 2.5% quantile"),
    Column("diameter_at_threshold_high_mm", "text", "its 97.5% quantile"),
    Column("linear_z", "number", "Z of the linear model; empty where it does not apply"),
    Column("altman_z", "number", "Z with Altman's spread; empty where it does not apply"),
    Column("diameter_per_bsa_mm_m2", "number", "diameter by body surface area (Haycock)"),
    Column("diameter_per_height_cm_m", "number", "diameter by height"),
    Column("area_per_height_cm2_m", "number", "cross-section by height"),
    Column("verdict", "text", "ok, caution, or not_reliable (then no score is given unless it was asked for)"),
    Column("context_hdi_width", "number", "W2: the width of the interval at two spreads above the expected diameter"),
    Column("context_hdi_width_percentile", "number", "its percentile among the training people"),
    Column("reasons", "text", "codes of the verdict's reasons"),
    Column("advisories", "text", "codes of the advisories"),
    Column("error_codes", "text", "why the row has no answer; empty: it has one"),
    Column("errors", "text", "the same in words"),
)
# A file of scores holds the rows with an answer; a second file holds the others.
SCORE_COLUMNS = COLUMNS[:-2]
ERROR_COLUMNS = (*COLUMNS[:3], *COLUMNS[-2:])


def error_columns(sites: Iterable[str], errors: Collection[Sequence[FieldError]]) -> dict[str, list[str | None]]:
    """What rows without a score say. Both are of these rows only."""
    return {
        "site": [site or None for site in sites],
        "error_codes": [CELL_SEPARATOR.join(dict.fromkeys(error.code for error in found)) for found in errors],
        "errors": [" ".join(error.message for error in found) for found in errors],
    }
