"""What is written from columns is what the answers say, digit by digit."""

import json
from typing import Any

import numpy as np
import pytest

from app.domain.patient import Patient, Sex
from app.domain.query import CONVENTIONS, MeasurementColumns, ScoreQuery
from app.formats import block_columns
from app.formats.response import body, encode
from app.inference.answer_output import AnswerOutput
from app.inference.scoring import score_columns
from tests.samples import a_loaded_model

MODEL = a_loaded_model()
OPTIONS = [((2.0,), 0.95), ((2.0, 3.0, -1.5), 0.95), ((2.0,), 0.8)]


def queries(count: int, thresholds: tuple[float, ...], hdi_probability: float, *, with_error: bool) -> list[ScoreQuery]:
    """People of all kinds, also of whom no score is given."""
    rng = np.random.default_rng(count)
    ages, heights = rng.uniform(0.0, 110.0, count).tolist(), rng.normal(165.0, 20.0, count).clip(60.0, 220.0).tolist()
    found = []
    for k, (age, height) in enumerate(zip(ages, heights, strict=True)):
        weight = float(rng.uniform(12.0, 45.0) * (height / 100.0) ** 2)
        person = Patient(age, Sex.MALE if k % 2 else Sex.FEMALE, height, weight)
        options = (thresholds, hdi_probability, 1.5 if with_error and k % 3 else 0.0, CONVENTIONS[k % len(CONVENTIONS)])
        found.append(ScoreQuery(person, float(rng.uniform(10.0, 90.0)), *options, include_unreliable=k % 4 == 0))
    return found


@pytest.mark.parametrize("with_error", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_json_records_and_files_hold_what_the_answers_hold(options: Any, with_error: bool) -> None:
    columns = score_columns(MODEL, MeasurementColumns.of(queries(240, *options, with_error=with_error)))
    output, scored = AnswerOutput(columns), columns.scored()
    items = [json.loads(item) for item in output.items(b',"site":"100%"', range(240), [b"null"] * 240)]
    recorded = block_columns.items(json.loads(encode(output.record_columns())), 240)
    flat = {name: np.asarray(column, dtype=object) for name, column in output.flat().items()}
    for k, one in enumerate(scored):
        answer = body(one.answer)
        expected = {"index": k, "id": None, "site": "100%", "input": json.loads(encode(one.input)), **answer}
        assert json.dumps(items[k]) == json.dumps(expected)  # the order of fields, too
        assert recorded[k] == answer
        assert {name: _none(column[k]) for name, column in flat.items()} == expected_flat(answer, with_error)
    verdicts = {(one.answer.reliability.verdict, one.answer.score is not None) for one in scored}
    assert {(verdict, given) for verdict, given, _ in output.verdicts()} == verdicts
    assert sum(count for _, _, count in output.verdicts()) == 240
    assert len(verdicts) >= 3


ERROR_FREE = "score_with_measurement_error"


def _none(value: Any) -> Any:
    return None if value != value else value


def expected_flat(answer: dict[str, Any], with_error: bool) -> dict[str, Any]:
    """From the answer itself, one name after the other."""
    score, free, reference = (answer[name] or {} for name in ("score", ERROR_FREE, "reference"))
    comparators, reliability, hdi, free_hdi = answer["comparators"] or {}, answer["reliability"], *(
        one.get("hdi", {}) for one in (score, free)
    )  # fmt: skip
    at, interval = reference.get("diameter_at_threshold_mm"), reference.get("interval_mm", {})
    found = {
        "expected_ns": score.get("expected_ns"),
        "hdi_probability": hdi.get("probability"),
        **{f"hdi_{name}": hdi.get(name) for name in ("low", "high", "width")},
        "position": score.get("position", "not_assessed"),
        "thresholds": joined(score.get("exceedance"), "threshold"),
        "probability_above": joined(score.get("exceedance"), "probability"),
        "probability_below": joined(score.get("exceedance"), "probability_below"),
        **{name: reference.get(name) for name in (
            "expected_diameter_mm", "expected_diameter_sd_mm", "aleatoric_sd_mm", "aleatoric_sd_log_se", "percentile",
        )},
        **{f"interval_{name}_mm": interval.get(name) for name in ("low", "high")},
        **{f"diameter_at_threshold_{name}_mm": joined(at, name) for name in ("median", "low", "high")},
        **{name: comparators.get(name) for name in (
            "linear_z", "altman_z", "diameter_per_bsa_mm_m2", "diameter_per_height_cm_m", "area_per_height_cm2_m",
        )},
        **{name: reliability[name] for name in ("verdict", "context_hdi_width", "context_hdi_width_percentile")},
        "reasons": ";".join(reason["code"] for reason in reliability["reasons"]) or None,
        "advisories": ";".join(advisory["code"] for advisory in answer["advisories"]) or None,
    }  # fmt: skip
    if with_error:
        found |= {f"error_free_hdi_{name}": free_hdi.get(name) for name in ("low", "high")}
        found["error_free_probability_above"] = joined(free.get("exceedance"), "probability")
        found["error_free_probability_below"] = joined(free.get("exceedance"), "probability_below")
    return found


def joined(entries: list[dict[str, float]] | None, name: str) -> str | None:
    return None if entries is None else ";".join(encode(entry[name]).decode() for entry in entries)
