"""The published cases are those that the generator makes, and its numbers are right by another road."""

from itertools import islice
from pathlib import Path

import mpmath
import pytest

from app.benchmark.conformance.exact import ExactModel
from app.benchmark.conformance.refusals import refusal_cases
from app.benchmark.conformance.scores import SITES, VERSION, lookup_cases, picture_cases, score_cases
from app.services.conformance.cases import read_cases
from app.store import load

STORE = Path(__file__).parents[2] / "models_store"


@pytest.fixture(scope="module")
def models() -> dict[str, ExactModel]:
    return {site: ExactModel.read(STORE / site / VERSION) for site in SITES}


def test_the_published_cases_are_those_of_the_generator(models: dict[str, ExactModel]) -> None:
    """All of them but for their numbers, which take minutes; of the numbers those of the first two cases."""
    published = {case.name: case for case in read_cases().cases}
    scores = islice(score_cases(models, lambda step, share: None), 2)
    made = [*scores, *picture_cases(models), *lookup_cases(), *refusal_cases()]
    for case in made:
        assert published[case.name] == case
    others = [name for name in published if name not in {case.name for case in made}]
    assert all(name.startswith(("score-", "study-")) for name in others)


def test_the_cases_name_the_shipped_models() -> None:
    for name, model in read_cases().models.items():
        ref = load(STORE, *name.split()).ref
        assert (ref.site, ref.version, ref.sha256) == (model.site, model.version, model.sha256)


@pytest.mark.parametrize("site", SITES)
def test_the_exact_prediction_is_that_of_the_trainer(models: dict[str, ExactModel], site: str) -> None:
    """GPflow itself predicted the golden cases when the model was published."""
    golden = load(STORE, site, VERSION).golden
    for case in golden[::8]:
        patient = case.patient
        person = {
            "age_years": patient.age_years,
            "sex": str(patient.sex),
            "height_cm": patient.height_cm,
            "weight_kg": patient.weight_kg,
        }
        found = models[site].moments(person)
        expected = case.moments
        for mine, theirs in ((found.m1, expected.m1), (found.v1, expected.v1), (found.m2, expected.m2)):
            assert float(mine) == pytest.approx(theirs, rel=1e-9)
        assert float(found.v2) == pytest.approx(expected.v2, rel=1e-7)


def test_the_exact_interval_holds_its_mass_and_is_the_shortest(models: dict[str, ExactModel]) -> None:
    moments = models["SoV"].moments({"age_years": 11.25, "sex": "male", "height_cm": 146, "weight_kg": 38})
    low, high = moments.hdi(29.5, 0.95)
    inside = moments.tails(29.5, high)[0] - moments.tails(29.5, low)[0]
    assert inside == pytest.approx(0.95, abs=1e-12)
    step = 1e-3 * (high - low)
    for shift in (-step, step):
        ahead = moments.tails(29.5, high + shift)[0] - moments.tails(29.5, low + shift)[0]
        assert ahead < 0.95  # of the same width
    at = moments.diameter_at_threshold(2.0, 0.5)
    assert moments.tails(at, 2.0)[1] == pytest.approx(0.5, abs=1e-12)  # the median is where P(NS > 2) is one half
    assert mpmath.mp.dps != 20  # the precision of other users of mpmath is left alone
