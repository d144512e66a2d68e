import math

import pytest

from app.domain.patient import YOUNGEST_AGE_YEARS, Patient, Sex, covariate_names, covariates
from app.domain.query import Convention

MAN = Patient(age_years=25, sex=Sex.MALE, height_cm=182, weight_kg=78)


def test_body_sizes_follow_the_published_formulas() -> None:
    # Through logarithms: 0.024265 · 182^0.3964 · 78^0.5378.
    assert math.log(MAN.bsa_m2) == pytest.approx(math.log(0.024265) + 0.3964 * math.log(182) + 0.5378 * math.log(78))
    assert MAN.bmi_kg_m2 == pytest.approx(23.54788, abs=1e-5)


def test_covariates_stand_in_the_named_order() -> None:
    row = dict(zip(covariate_names("log"), covariates([MAN], "log")[0], strict=True))
    assert row == {"log_age": pytest.approx(3.2188758), "male": 1.0, "height_cm": 182.0, "weight_kg": 78.0}
    assert covariates([MAN], "identity")[0, 0] == 25.0


def test_a_newborn_has_finite_covariates() -> None:
    newborn = Patient(age_years=0, sex=Sex.FEMALE, height_cm=50, weight_kg=3.4)
    youngest = Patient(age_years=YOUNGEST_AGE_YEARS, sex=Sex.FEMALE, height_cm=50, weight_kg=3.4)
    assert (covariates([newborn], "log") == covariates([youngest], "log")).all()


def test_no_patients_give_no_rows() -> None:
    assert covariates([], "log").shape == (0, 4)


def test_conventions_differ_only_where_both_are_stated() -> None:
    ours = Convention(edge="leading", phase="end-diastole", modality="TTE")
    assert Convention().differences(ours) == ()
    assert Convention(edge="inner", modality="TTE").differences(ours) == ("edge",)
    assert Convention("outer", "mid-systole", "CT").differences(ours) == ("edge", "phase", "modality")
