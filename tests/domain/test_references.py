import pytest

from app.domain.patient import Patient, Sex
from app.domain.references import CAMPENS_2014, DEVEREUX_2012_BY_BSA, DEVEREUX_2012_BY_HEIGHT

TALL_MAN = Patient(25.0, Sex.MALE, 182.0, 78.0)
OBESE_MAN = Patient(61.0, Sex.MALE, 170.0, 130.0)


def test_campens_gives_the_printed_example() -> None:
    reference = CAMPENS_2014["SoV"]
    assert f"{reference.expected_mm(TALL_MAN):.2f}" == "31.15"
    assert f"{reference.z(TALL_MAN, 36.0):+.2f}" == "+1.62"


def test_devereux_gives_the_printed_example() -> None:
    assert f"{DEVEREUX_2012_BY_BSA.expected_mm(TALL_MAN):.2f}" == "32.99"
    assert f"{DEVEREUX_2012_BY_BSA.z(TALL_MAN, 36.0):+.2f}" == "+1.15"


def test_surface_area_excuses_a_dilated_aorta_in_obesity_and_height_does_not() -> None:
    assert f"{DEVEREUX_2012_BY_BSA.z(OBESE_MAN, 41.0):.1f}" == "1.2"
    assert f"{DEVEREUX_2012_BY_HEIGHT.z(OBESE_MAN, 41.0):.1f}" == "2.4"


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
    assert reference.expected_mm(ten_years_old) == pytest.approx(10.0**log10_mm, rel=1e-12)
    assert reference.z(ten_years_old, 10.0 ** (log10_mm - 2.0 * sd)) == pytest.approx(-2.0, abs=1e-9)


def test_a_woman_is_expected_to_be_narrower_than_a_man_of_her_size() -> None:
    woman = Patient(25.0, Sex.FEMALE, 182.0, 78.0)
    for reference in (CAMPENS_2014["SoV"], CAMPENS_2014["AA"], DEVEREUX_2012_BY_BSA, DEVEREUX_2012_BY_HEIGHT):
        assert reference.expected_mm(woman) < reference.expected_mm(TALL_MAN)
