"""Simulated people whose true z is known, drawn from published equations. They contain no patient's data.

Heights and weights come from CDC 2000 (children) and NHANES (adults). The CDC 2000 growth charts (United States, public
domain) give L, M and S by age: a measure at z standard deviations is M·(1 + L·S·z)^(1/L), with L, M and S linear in age
between the rows of `cdc_lms.csv`.

Diameters are log-normal around Campens et al. 2014 (Am J Cardiol 114:914; 849 people of 1 to 85 years; leading edge,
end-diastole, Haycock BSA):

    log10(mm) = a + b·log10(age) + c·BSA,        Z on the log10 scale

The coefficients come from secondary sources and are not yet checked against the paper. Each quantity is rounded as a
hospital would write it *before* the next one is drawn from it, so the true z is exact for the numbers that are written.
"""

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from app.domain.patient import AgeTransform, Patient, Sex, covariate_columns
from app.files import csv_lines
from app.maths.moments import Array

Measure = Literal["stature", "bmi"]


@dataclass(frozen=True, slots=True)
class GrowthTable:
    age_months: Array  # [K] rising
    L: Array  # [K]
    M: Array  # [K] median, cm or kg/m²
    S: Array  # [K]

    def value(self, age_years: Array, z: Array) -> Array:
        """[N] the measure of children of these ages at these z."""
        months = 12.0 * age_years
        power, median, spread = (np.interp(months, self.age_months, column) for column in (self.L, self.M, self.S))
        # Where L crosses zero the limit M·exp(S·z) holds; a tiny L gives it without dividing by zero.
        power = np.where(np.abs(power) < 1e-9, 1e-9, power)
        value: Array = median * np.exp(np.log1p(power * spread * z) / power)
        return value


@cache
def growth_table(measure: Measure, sex: Sex) -> GrowthTable:
    text = resources.files("app.training").joinpath("cdc_lms.csv").read_text(encoding="utf-8")
    rows = [r for r in csv.DictReader(text.splitlines()) if r["measure"] == measure and r["sex"] == sex.value]
    columns = np.array([[float(row[name]) for name in ("age_months", "L", "M", "S")] for row in rows])
    return GrowthTable(*columns.T)


Rows = NDArray[np.intp]

ADULT_FROM_YEARS = 18.0
CHILD_HEIGHT_Z = (-2.5, 2.5)
CHILD_BMI_Z = (-2.0, 1.64)  # 1.64 is the 95th percentile, where obesity begins
ADULT_BMI = (18.5, 30.0)


@dataclass(frozen=True, slots=True)
class AdultBody:
    """NHANES, with t = age - 45: height = h0 + h1·t; ln BMI = b0 + b1·t + b2·t²; normal residuals."""

    height_cm: tuple[float, float]  # h0, h1
    height_sd_cm: float
    log_bmi: tuple[float, float, float]  # b0, b1, b2
    log_bmi_sd: float


ADULT_BODIES = {
    Sex.MALE: AdultBody((175.38, -0.0892), 7.61, (3.2395, 0.001754, -0.000055), 0.1122),
    Sex.FEMALE: AdultBody((162.13, -0.1159), 6.88, (3.2109, 0.001487, -0.000050), 0.1215),
}


def draw_bodies(rng: Generator, age_years: Array, male: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Heights [N] in cm and weights [N] in kg, to one decimal."""
    height, weight = np.empty_like(age_years), np.empty_like(age_years)
    for sex, has_sex in ((Sex.MALE, male), (Sex.FEMALE, ~male)):
        for draw, of_age in ((_children, age_years < ADULT_FROM_YEARS), (_adults, age_years >= ADULT_FROM_YEARS)):
            rows = has_sex & of_age
            height[rows], weight[rows] = draw(rng, age_years[rows], sex)
    return height, weight


def draw_until(
    propose: Callable[[NDArray[np.intp]], Array], accept: Callable[[Array], NDArray[np.bool_]], n: int
) -> Array:
    """[n] values by rejection: `propose(rows)` draws again for the rows that `accept` has not taken."""
    values = propose(np.arange(n))
    while (rejected := np.flatnonzero(~accept(values))).size:
        values[rejected] = propose(rejected)
    return values


def within(limits: tuple[float, float]) -> Callable[[Array], NDArray[np.bool_]]:
    return lambda values: (values >= limits[0]) & (values <= limits[1])


def _children(rng: Generator, age: Array, sex: Sex) -> tuple[Array, Array]:
    n = len(age)
    height_z = draw_until(lambda rows: rng.standard_normal(len(rows)), within(CHILD_HEIGHT_Z), n)
    bmi_z = draw_until(lambda rows: rng.standard_normal(len(rows)), within(CHILD_BMI_Z), n)
    height = growth_table("stature", sex).value(age, height_z).round(1)
    return height, _weight(height, growth_table("bmi", sex).value(age, bmi_z))


def _adults(rng: Generator, age: Array, sex: Sex) -> tuple[Array, Array]:
    body, t = ADULT_BODIES[sex], age - 45.0
    h0, h1 = body.height_cm
    b0, b1, b2 = body.log_bmi
    height: Array = (h0 + h1 * t + body.height_sd_cm * rng.standard_normal(len(age))).round(1)
    log_bmi = b0 + b1 * t + b2 * t**2

    def propose(rows: Rows) -> Array:
        drawn = np.exp(log_bmi[rows] + body.log_bmi_sd * rng.standard_normal(len(rows)))
        return _weight(height[rows], drawn)

    # The limits hold for the weight as written, so that no rounded person falls outside them.
    limits = within(ADULT_BMI)
    return height, draw_until(propose, lambda weight: limits(weight / (height / 100.0) ** 2), len(age))


def _weight(height_cm: Array, bmi: Array) -> Array:
    weight: Array = bmi * (height_cm / 100.0) ** 2
    return weight.round(1)


@dataclass(frozen=True, slots=True)
class LogCoefficients:
    intercept: float
    log10_age: float
    bsa: float
    residual_sd: float  # of log10(mm)


@dataclass(frozen=True, slots=True)
class LogDiameterReference:
    """Diameters are log-normal around the median 10^`expected_log10`, in mm."""

    male: LogCoefficients
    female: LogCoefficients

    def for_sex(self, sex: Sex) -> LogCoefficients:
        return self.male if sex is Sex.MALE else self.female

    def expected_log10(self, patient: Patient) -> float:
        own = self.for_sex(patient.sex)
        return own.intercept + own.log10_age * math.log10(patient.age_years) + own.bsa * patient.bsa_m2


CAMPENS_2014 = {
    "SoV": LogDiameterReference(
        male=LogCoefficients(1.115, 0.137, 0.094, 0.0388), female=LogCoefficients(1.112, 0.132, 0.080, 0.0427)
    ),
    "AA": LogDiameterReference(
        male=LogCoefficients(1.038, 0.187, 0.068, 0.0433), female=LogCoefficients(1.006, 0.172, 0.087, 0.0450)
    ),
}


SITES = ("SoV", "AA")
CHILDREN_SHARE = 0.15
CHILDREN_AGES = (5.0, 18.0)
ADULT_AGES = (18.0, 85.0)
HEALTHY_AGE = (45.0, 16.0)  # mean and sd of the adults before the cut
HEALTHY_CORRELATION = 0.6  # of the residuals of SoV and AA; an assumption

# Matched to Detaint et al. 2014: 48±15 years, 72% men, SoV 37.1±6 and AA 37.9±6 mm.
BICUSPID_AGE = (48.0, 15.0)
BICUSPID_MEN_SHARE = 0.72
BICUSPID_Z_MEAN = (1.33, 2.36)  # SoV, AA
BICUSPID_Z_SD = (1.55, 1.40)
BICUSPID_CORRELATION = 0.45

DILATED_MM = 40.0  # the usual definition by absolute size in adults


@dataclass(frozen=True, slots=True)
class SimulatedSite:
    diameter_mm: Array  # [N] two decimals
    true_z_log: Array  # [N] (log10 y - E)/SD of log10 y given the person
    true_z_mm: Array  # [N] (y - E[y|x])/SD[y|x]

    @property
    def dilated(self) -> NDArray[np.bool_]:
        return self.diameter_mm >= DILATED_MM


@dataclass(frozen=True, slots=True)
class SimulatedPeople:
    kind: Literal["healthy", "bicuspid"]
    age_years: Array  # [N] two decimals
    male: NDArray[np.bool_]  # [N]
    height_cm: Array  # [N] one decimal
    weight_kg: Array  # [N] one decimal
    sites: dict[str, SimulatedSite]  # by the names in SITES

    @property
    def sex(self) -> NDArray[np.str_]:
        return np.where(self.male, Sex.MALE.value, Sex.FEMALE.value)

    def covariates(self, age: AgeTransform) -> Array:
        """[N, 4]"""
        male = self.male.astype(np.float64)
        return covariate_columns(self.age_years, male, self.height_cm, self.weight_kg, age=age)


def simulate_cohort(n: int, seed: int) -> SimulatedPeople:
    """n healthy people: 15% of 5 to 18 years, the others of 18 to 85; as many men as women, give or take one."""
    rng = np.random.default_rng(seed)
    children = round(CHILDREN_SHARE * n)
    age = np.concatenate([_children_ages(rng, children), _adult_ages(rng, n - children, HEALTHY_AGE)])
    male = np.arange(n) % 2 == 0  # every other person, so that children and adults are balanced too
    order = rng.permutation(n)
    return _people("healthy", rng, age[order], male[order], _correlated(rng, n, HEALTHY_CORRELATION))


def simulate_bicuspid(n: int, seed: int) -> SimulatedPeople:
    """n adults with a bicuspid valve: bodies of healthy adults, aortas shifted on the log scale."""
    rng = np.random.default_rng(seed)
    age = _adult_ages(rng, n, BICUSPID_AGE)
    male = rng.permutation(np.arange(n) < round(BICUSPID_MEN_SHARE * n))
    z = np.array(BICUSPID_Z_MEAN) + np.array(BICUSPID_Z_SD) * _correlated(rng, n, BICUSPID_CORRELATION)
    return _people("bicuspid", rng, age, male, z)


def to_csv(people: SimulatedPeople) -> str:
    """What a hospital would have, then the truth; bicuspid patients also carry the label of evaluation."""
    columns = dict(_columns(people))
    return csv_lines([list(columns), *zip(*columns.values(), strict=True)]).decode()


def _columns(people: SimulatedPeople) -> Iterator[tuple[str, list[str]]]:
    yield "age_years", [f"{v:.2f}" for v in people.age_years]
    yield "sex", people.sex.tolist()
    yield "height_cm", [f"{v:.1f}" for v in people.height_cm]
    yield "weight_kg", [f"{v:.1f}" for v in people.weight_kg]
    for name, site in people.sites.items():
        yield f"{name}_mm", [f"{v:.2f}" for v in site.diameter_mm]
    for name, site in people.sites.items():
        yield f"{name}_true_z_log", [f"{v:.9g}" for v in site.true_z_log]
        yield f"{name}_true_z_mm", [f"{v:.9g}" for v in site.true_z_mm]
    if people.kind == "bicuspid":
        for name, site in people.sites.items():
            yield f"{name}_dilated", [str(int(v)) for v in site.dilated]


def _children_ages(rng: Generator, n: int) -> Array:
    # Rounded down: nobody drawn as a child is written as an adult of 18.00 years.
    ages: Array = np.floor(100.0 * rng.uniform(*CHILDREN_AGES, n)) / 100.0
    return ages


def _adult_ages(rng: Generator, n: int, normal: tuple[float, float]) -> Array:
    mean, sd = normal
    return draw_until(lambda rows: rng.normal(mean, sd, len(rows)), within(ADULT_AGES), n).round(2)


def _correlated(rng: Generator, n: int, correlation: float) -> Array:
    """[N, 2] standard normal pairs."""
    return rng.multivariate_normal(np.zeros(2), [[1.0, correlation], [correlation, 1.0]], n)


def _people(
    kind: Literal["healthy", "bicuspid"], rng: Generator, age: Array, male: NDArray[np.bool_], z: Array
) -> SimulatedPeople:
    return measured(kind, age, male, *draw_bodies(rng, age, male), z)


def measured(
    kind: Literal["healthy", "bicuspid"],
    age: Array,
    male: NDArray[np.bool_],
    height: Array,
    weight: Array,
    z: Array,  # [N, 2] log scale, in the order of SITES
) -> SimulatedPeople:
    """People of given bodies, with the diameters that the published equations give them."""
    columns = zip(age.tolist(), male.tolist(), height.tolist(), weight.tolist(), strict=True)
    patients = [Patient(a, Sex.MALE if m else Sex.FEMALE, h, w) for a, m, h, w in columns]
    sites = {site: _measure(CAMPENS_2014[site], patients, z[:, k]) for k, site in enumerate(SITES)}
    return SimulatedPeople(kind, age, male, height, weight, sites)


def _measure(reference: LogDiameterReference, patients: list[Patient], z: Array) -> SimulatedSite:
    """log10 y ~ N(mu, sd²). With k = sd·ln 10: E[y] = 10^mu·exp(k²/2), SD[y] = E[y]·sqrt(exp(k²) - 1)."""
    mu = np.array([reference.expected_log10(patient) for patient in patients])
    sd = np.array([reference.for_sex(patient.sex).residual_sd for patient in patients])
    y = np.round(10.0 ** (mu + sd * z), 2)
    k2 = (sd * np.log(10.0)) ** 2
    mean = 10.0**mu * np.exp(k2 / 2.0)
    return SimulatedSite(y, (np.log10(y) - mu) / sd, (y - mean) / (mean * np.sqrt(np.expm1(k2))))
