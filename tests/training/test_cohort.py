import csv
import io
import math

import numpy as np
import pytest
from scipy.stats import lognorm

from app.domain.patient import Patient, Sex
from app.training.cohort import (
    CAMPENS_2014,
    SITES,
    LogDiameterReference,
    SimulatedPeople,
    growth_table,
    simulate_bicuspid,
    simulate_cohort,
    to_csv,
)

TALL_MAN = Patient(25.0, Sex.MALE, 182.0, 78.0)


def z_log(reference: LogDiameterReference, patient: Patient, diameter_mm: float) -> float:
    expected = reference.expected_log10(patient)
    return (math.log10(diameter_mm) - expected) / reference.for_sex(patient.sex).residual_sd


def expected_mm(reference: LogDiameterReference, patient: Patient) -> float:
    return float(10.0 ** reference.expected_log10(patient))


def test_campens_gives_the_printed_example() -> None:
    reference = CAMPENS_2014["SoV"]
    assert f"{expected_mm(reference, TALL_MAN):.2f}" == "31.15"
    assert f"{z_log(reference, TALL_MAN, 36.0):+.2f}" == "+1.62"


@pytest.mark.parametrize(
    ("site", "sex", "intercept", "age", "bsa", "sd"),
    [
        ("SoV", Sex.MALE, 1.115, 0.137, 0.094, 0.0388),
        ("SoV", Sex.FEMALE, 1.112, 0.132, 0.080, 0.0427),
        ("AA", Sex.MALE, 1.038, 0.187, 0.068, 0.0433),
        ("AA", Sex.FEMALE, 1.006, 0.172, 0.087, 0.0450),
    ],
)
def test_campens_is_the_published_equation_of_each_site_and_sex(
    site: str, sex: Sex, intercept: float, age: float, bsa: float, sd: float
) -> None:
    ten_years_old = Patient(10.0, sex, 140.0, 35.0)
    log10_mm = intercept + age + bsa * ten_years_old.bsa_m2
    reference = CAMPENS_2014[site]
    assert expected_mm(reference, ten_years_old) == pytest.approx(10.0**log10_mm, rel=1e-12)
    assert z_log(reference, ten_years_old, 10.0 ** (log10_mm - 2.0 * sd)) == pytest.approx(-2.0, abs=1e-9)


def test_a_woman_is_expected_to_be_narrower_than_a_man_of_her_size() -> None:
    woman = Patient(25.0, Sex.FEMALE, 182.0, 78.0)
    for reference in CAMPENS_2014.values():
        assert expected_mm(reference, woman) < expected_mm(reference, TALL_MAN)


MANY = 60_000  # the standard error of a mean diameter is then 0.02 mm


@pytest.fixture(scope="module")
def healthy() -> SimulatedPeople:
    return simulate_cohort(MANY, seed=11)


@pytest.fixture(scope="module")
def bicuspid() -> SimulatedPeople:
    return simulate_bicuspid(MANY, seed=12)


@pytest.mark.parametrize(
    ("site", "male", "mean", "sd"),
    [("SoV", True, 33.5, 3.5), ("AA", True, 30.2, 3.6), ("SoV", False, 29.4, 3.3), ("AA", False, 27.6, 3.3)],
)
def test_adults_have_the_published_normal_diameters(
    healthy: SimulatedPeople, site: str, male: bool, mean: float, sd: float
) -> None:
    adults = healthy.sites[site].diameter_mm[(healthy.male == male) & (healthy.age_years >= 18.0)]
    assert adults.mean() == pytest.approx(mean, abs=0.1)
    assert adults.std() == pytest.approx(sd, abs=0.1)


@pytest.mark.parametrize(("site", "mean", "sd", "dilated"), [("SoV", 37.1, 6.0, 0.29), ("AA", 37.9, 6.0, 0.35)])
def test_bicuspid_patients_match_the_published_series(
    bicuspid: SimulatedPeople, site: str, mean: float, sd: float, dilated: float
) -> None:
    measured = bicuspid.sites[site]
    assert measured.diameter_mm.mean() == pytest.approx(mean, abs=0.15)
    assert measured.diameter_mm.std() == pytest.approx(sd, abs=0.15)
    assert measured.dilated.mean() == pytest.approx(dilated, abs=0.01)
    assert bicuspid.male.mean() == pytest.approx(0.72, abs=1e-4)
    assert bicuspid.age_years.min() >= 18.0


def test_bicuspid_scores_are_the_stated_pair_of_normals_on_the_log_scale(bicuspid: SimulatedPeople) -> None:
    z = np.array([bicuspid.sites[site].true_z_log for site in SITES])
    np.testing.assert_allclose(z.mean(axis=1), [1.33, 2.36], atol=0.03)
    np.testing.assert_allclose(z.std(axis=1), [1.55, 1.40], atol=0.03)
    assert np.corrcoef(z)[0, 1] == pytest.approx(0.45, abs=0.02)


def test_healthy_scores_are_standard_on_both_scales_and_correlate(healthy: SimulatedPeople) -> None:
    for site in SITES:
        for z in (healthy.sites[site].true_z_log, healthy.sites[site].true_z_mm):
            assert z.mean() == pytest.approx(0.0, abs=0.02)
            assert z.std() == pytest.approx(1.0, abs=0.02)
    residuals = [healthy.sites[site].true_z_log for site in SITES]
    assert np.corrcoef(residuals)[0, 1] == pytest.approx(0.6, abs=0.02)


def test_two_on_the_log_scale_is_more_than_two_in_millimetres(healthy: SimulatedPeople) -> None:
    site = healthy.sites["SoV"]
    near_two = healthy.male & (np.abs(site.true_z_log - 2.0) < 0.02)
    assert site.true_z_mm[near_two].mean() == pytest.approx(2.13, abs=0.02)


def test_ages_and_sexes_are_as_described(healthy: SimulatedPeople) -> None:
    children = healthy.age_years < 18.0
    assert children.mean() == pytest.approx(0.15, abs=1e-4)
    assert healthy.male.sum() == MANY // 2
    assert healthy.male[children].mean() == pytest.approx(0.5, abs=1e-3)
    assert healthy.age_years[children].mean() == pytest.approx(11.5, abs=0.15)
    adults = healthy.age_years[~children]
    assert (adults.min(), adults.max()) == (pytest.approx(18.0, abs=0.1), pytest.approx(85.0, abs=0.1))
    assert adults.max() <= 85.0
    # A normal(45, 16) cut to 18..85 has this mean and sd; clipped at the ends it would have 45.3 and 15.3.
    assert adults.mean() == pytest.approx(46.33, abs=0.2)
    assert adults.std() == pytest.approx(14.09, abs=0.2)


def test_adult_bodies_stay_within_the_limits_as_written(healthy: SimulatedPeople) -> None:
    adult = healthy.age_years >= 18.0
    bmi = healthy.weight_kg / (healthy.height_cm / 100.0) ** 2
    assert bmi[adult].min() >= 18.5
    assert bmi[adult].max() <= 30.0
    around_45 = adult & (np.abs(healthy.age_years - 45.0) < 2.0)
    assert healthy.height_cm[around_45 & healthy.male].mean() == pytest.approx(175.38, abs=0.5)
    assert healthy.height_cm[around_45 & healthy.male].std() == pytest.approx(7.61, abs=0.4)
    assert healthy.height_cm[around_45 & ~healthy.male].mean() == pytest.approx(162.13, abs=0.5)


def test_children_stay_within_the_limits_of_growth(healthy: SimulatedPeople) -> None:
    boys = healthy.male & (healthy.age_years < 18.0)
    age, height = healthy.age_years[boys], healthy.height_cm[boys]
    stature = growth_table("stature", Sex.MALE)
    assert (height >= stature.value(age, np.full(len(age), -2.5)) - 0.051).all()
    assert (height <= stature.value(age, np.full(len(age), 2.5)) + 0.051).all()
    bmi = healthy.weight_kg[boys] / (height / 100.0) ** 2
    heaviest = growth_table("bmi", Sex.MALE).value(age, np.full(len(age), 1.64))
    assert (bmi <= 1.005 * heaviest).all()  # 50 g of rounding in 15 kg
    assert np.median(height / stature.value(age, np.zeros(len(age)))) == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize(
    ("months", "z", "stature"),
    # A row of the table; halfway between two rows; L, M and S of 60.5 months at z = 2.
    [(60.5, 0.0, 109.175), (66.5, 0.0, 112.418), (60.5, 2.0, 109.175 * (1 + 1.26637 * 0.0425933 * 2) ** (1 / 1.26637))],
)
def test_growth_follows_the_table(months: float, z: float, stature: float) -> None:
    value = growth_table("stature", Sex.MALE).value(np.array([months / 12.0]), np.array([z]))
    assert value[0] == pytest.approx(stature, rel=1e-9)


def test_growth_follows_the_table_where_the_power_is_negative() -> None:
    heaviest = growth_table("bmi", Sex.FEMALE).value(np.array([72.5 / 12.0]), np.array([1.64]))
    expected = 15.2169 * (1 - 3.22561 * 0.093803 * 1.64) ** (-1 / 3.22561)
    assert heaviest[0] == pytest.approx(expected, rel=1e-9)


def test_growth_is_smooth_where_the_power_crosses_zero() -> None:
    months = 48.5 + 12.0 * 0.225706 / (0.225706 + 0.0577299)  # L = 0 for the height of girls
    girls = growth_table("stature", Sex.FEMALE)
    around = girls.value(np.array([months - 1e-4, months, months + 1e-4]) / 12.0, np.full(3, 2.0))
    np.testing.assert_allclose(around, around[1], rtol=1e-5)
    assert around[1] > girls.value(np.array([months / 12.0]), np.zeros(1))[0]


def test_the_same_seed_gives_the_same_people_and_another_seed_others() -> None:
    assert to_csv(simulate_cohort(60, seed=5)) == to_csv(simulate_cohort(60, seed=5))
    assert to_csv(simulate_cohort(60, seed=5)) != to_csv(simulate_cohort(60, seed=6))


@pytest.mark.parametrize("people", [simulate_cohort(50, seed=3), simulate_bicuspid(50, seed=3)])
def test_the_truth_holds_for_the_figures_as_written(people: SimulatedPeople) -> None:
    for row in csv.DictReader(io.StringIO(to_csv(people))):
        patient = Patient(float(row["age_years"]), Sex(row["sex"]), float(row["height_cm"]), float(row["weight_kg"]))
        for site in SITES:
            diameter = float(row[f"{site}_mm"])
            reference = CAMPENS_2014[site]
            assert float(row[f"{site}_true_z_log"]) == pytest.approx(z_log(reference, patient, diameter), abs=1e-8)
            sd = np.log(10.0) * reference.for_sex(patient.sex).residual_sd
            in_mm = lognorm(sd, scale=expected_mm(reference, patient))
            assert float(row[f"{site}_true_z_mm"]) == pytest.approx((diameter - in_mm.mean()) / in_mm.std(), abs=1e-7)


def test_the_file_has_the_hospital_columns_first_then_the_truth_then_the_labels() -> None:
    header = "age_years,sex,height_cm,weight_kg,SoV_mm,AA_mm,SoV_true_z_log,SoV_true_z_mm,AA_true_z_log,AA_true_z_mm"
    assert to_csv(simulate_cohort(10, seed=1)).splitlines()[0] == header
    lines = to_csv(simulate_bicuspid(10, seed=1)).splitlines()
    assert lines[0] == header + ",SoV_dilated,AA_dilated"
    assert len(lines) == 11


def test_the_label_says_who_reaches_forty_millimetres() -> None:
    for row in csv.DictReader(io.StringIO(to_csv(simulate_bicuspid(100, seed=2)))):
        for site in SITES:
            assert row[f"{site}_dilated"] == str(int(float(row[f"{site}_mm"]) >= 40.0))
