"""A score as a flat row: every row has the same columns, in one order, whatever was asked.

What a row asked several times (thresholds) stands in one cell, separated by `;`. A row without an answer says why.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from app.domain.card import ModelRef
from app.errors import FieldError
from app.formats.reading_row import BETWEEN, Item

Json = dict[str, Any]


class Column(NamedTuple):
    name: str
    kind: Literal["text", "number", "integer"]
    meaning: str


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


def answered(item: Item, model: ModelRef, cohort: str, told: Json) -> Json:
    """The row of an answer; `told` is the single answer from `score` to `advisories`, rounded."""
    row = {
        "index": item.index,
        "id": item.id or None,
        "site": model.site,
        "model_version": model.version,
        "model_sha256": model.sha256,
        "cohort": cohort,
        "position": "not_assessed",
        **_score(told["score"]),
        **_error_free(told["score_with_measurement_error"]),
        **_reference(told["reference"]),
        **{name: value for name, value in (told["comparators"] or {}).items() if name != "not_applicable"},
        **told["reliability"],
        "reasons": _codes(told["reliability"]["reasons"]),
        "advisories": _codes(told["advisories"]),
    }
    return {column.name: row.get(column.name) for column in COLUMNS}


def refused(item: Item, faults: Iterable[FieldError]) -> Json:
    """The row of a reading that has no answer."""
    listed = list(faults)
    row = {
        "index": item.index,
        "id": item.id or None,
        "site": item.site or None,
        "error_codes": BETWEEN.join(dict.fromkeys(fault.code for fault in listed)),
        "errors": " ".join(fault.message for fault in listed),
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
