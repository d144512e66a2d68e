"""A file of many patients: measurements as flat rows, and their scores as flat rows.

The columns of a measurement are the fields of the single request, `site` and an optional `id`; an object takes a
column for each of its parts (`convention.edge` and so on), an array one cell (`2;3`). A row of scores always has the
same columns in the same order. A row without a score says why.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.domain.card import ModelRef
from app.errors import FieldError, InvalidInput, InvalidTable
from app.files import decimal_number
from app.formats.table_files import RAGGED, Column, Row
from app.schemas.errors import did_you_mean, field_error, parse
from app.schemas.fields import FieldSpec, leaves, nested, spec
from app.schemas.requests import ScoreRequest, SiteRequest

Json = dict[str, Any]

BETWEEN = ";"  # elements of one cell
RAGGED_ROW = "The row does not have as many cells as the header. Is there a decimal comma where a point is needed?"
OTHER_SEPARATORS = (BETWEEN, "\t")
OTHER_SEPARATOR = (
    "The columns are separated by semicolons or tabs: save the file with commas between the columns, and with points "
    "in the numbers."
)

SITE, ID = "site", "id"
FIELDS = dict(leaves(spec(ScoreRequest).fields.values()))  # by the names of their columns
KNOWN = (ID, SITE, *FIELDS)
REQUIRED = tuple(name for name, field in FIELDS.items() if field.required)
FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Item:
    """One row: a request, or everything that is wrong with it."""

    index: int
    id: str
    site: str
    request: SiteRequest | None
    errors: tuple[FieldError, ...]


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


def read_item(index: int, row: Row, default_site: str | None = None) -> Item:
    """The request in a row whose columns were checked. An empty cell is a field that was not given."""
    cells = {name: cell for name, cell in row.items() if cell is not None and cell != ""}
    site, name = str(cells.pop(SITE, default_site) or ""), str(cells.pop(ID, ""))
    errors: list[FieldError] = []
    if RAGGED in cells:
        return Item(index, name, site, None, (field_error("ragged_row", "", RAGGED_ROW),))
    if not site:
        errors.append(field_error("missing", SITE, "site is required: the site of a published model."))
    values = {name: _value(FIELDS[name], cell) for name, cell in cells.items()}
    try:
        request = parse(ScoreRequest, nested(values)).for_site(site)
    except InvalidInput as invalid:
        errors.extend(invalid.errors)
    return Item(index, name, site, None if errors else request, tuple(errors))


def _value(field: FieldSpec, cell: object) -> object:
    """Text becomes what the field holds. What cannot is left unchanged, for validation to report."""
    if field.element is not None:
        parts = [part.strip() for part in cell.split(BETWEEN)] if isinstance(cell, str) else [cell]
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


def score_row(item: Item, model: ModelRef, cohort: str, answer: Json) -> Json:
    """The row of a score; `answer` is the single answer from `score` to `advisories`, rounded."""
    row = {
        "index": item.index,
        "id": item.id or None,
        "site": model.site,
        "model_version": model.version,
        "model_sha256": model.sha256,
        "cohort": cohort,
        "position": "not_assessed",
        **_score(answer["score"]),
        **_error_free(answer["score_with_measurement_error"]),
        **_reference(answer["reference"]),
        **{name: value for name, value in (answer["comparators"] or {}).items() if name != "not_applicable"},
        **answer["reliability"],
        "reasons": _codes(answer["reliability"]["reasons"]),
        "advisories": _codes(answer["advisories"]),
    }
    return {column.name: row.get(column.name) for column in COLUMNS}


def error_row(item: Item, errors: Iterable[FieldError]) -> Json:
    """The row of a measurement without a score."""
    listed = list(errors)
    row = {
        "index": item.index,
        "id": item.id or None,
        "site": item.site or None,
        "error_codes": BETWEEN.join(dict.fromkeys(error.code for error in listed)),
        "errors": " ".join(error.message for error in listed),
    }
    return {column.name: row.get(column.name) for column in COLUMNS}


def _score(score: Json | None) -> Json:
    if score is None:
        return {}
    return {
        "expected_ns": score["expected_ns"],
        **{f"hdi_{name}": value for name, value in score["hdi"].items()},
        "position": score["position"],
        "thresholds": _joined(score["exceedance"], "threshold"),
        "probability_above": _joined(score["exceedance"], "probability"),
        "probability_below": _joined(score["exceedance"], "probability_below"),
    }


def _error_free(score: Json | None) -> Json:
    if score is None:
        return {}
    return {
        "error_free_hdi_low": score["hdi"]["low"],
        "error_free_hdi_high": score["hdi"]["high"],
        "error_free_probability_above": _joined(score["exceedance"], "probability"),
        "error_free_probability_below": _joined(score["exceedance"], "probability_below"),
    }


def _reference(reference: Json | None) -> Json:
    if reference is None:
        return {}
    at = reference["diameter_at_threshold_mm"]
    quantiles = {f"diameter_at_threshold_{name}_mm": _joined(at, name) for name in ("median", "low", "high")}
    ends = {f"interval_{name}_mm": reference["interval_mm"][name] for name in ("low", "high")}
    return {**reference, **ends, **quantiles}


def _joined(entries: Iterable[Json], name: str) -> str:
    return BETWEEN.join(repr(entry[name]) for entry in entries)


def _codes(entries: Iterable[Json]) -> str | None:
    return BETWEEN.join(entry["code"] for entry in entries) or None
