"""The paper's clinical experiment on simulated people: trained on healthy ones, then applied to bicuspid patients.

The paper's 1110 healthy people and 351 patients are private; here as many are drawn from published equations, so the
true z of every patient is known. Training and test share one generator: this shows how the method behaves, and does
not repeat the paper's clinical results.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.benchmark.paper.methods import Qcad, Rocod, altman_z
from app.benchmark.paper.protocol import Method
from app.domain.patient import Sex, covariate_columns, haycock_bsa_m2
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import normalcy
from app.maths.statistics import LinearReference, RocAreas, compare_areas, fit_linear, roc_areas, roc_curve
from app.training.cohort import ADULT_FROM_YEARS, SITES, SimulatedPeople, simulate_bicuspid, simulate_cohort
from app.training.fit import fit
from app.training.recipe import Recipe

RECIPE = Recipe()
DILATED_Z = 2.0
CUT = 2.0
SEEN_BY_SAMPLING = 1.0 / 30_000  # the paper draws 30,000 times: a smaller probability mostly shows as 0
IN_THE_TAIL = 0.025
POSITIONS = (1 / 8, 3 / 8, 5 / 8, 7 / 8)  # of the four among all such patients, sorted by P(NS > 2)
DENSITY_POINTS = 161
DENSITY_REACH = 0.6  # beyond the interval, in widths of it
NS = "NS"
UNTESTED = ("true z", "diameter")  # one defines a label, so DeLong's error of its area is 0
DIAMETER_MM = 32.0  # as in the paper
AGES = np.linspace(5.0, 85.0, 41)
BSA_M2 = np.linspace(0.6, 2.6, 41)


@dataclass(frozen=True, slots=True)
class Models:
    """What healthy people teach about one site."""

    ns: HeteroscedasticPosterior
    homoscedastic: HeteroscedasticPosterior
    linear: LinearReference
    unsigned: dict[str, Method]  # these score an aorta as much too narrow the same


@dataclass(frozen=True, slots=True)
class SiteScores:
    """One site of N patients."""

    diameter_mm: Array
    moments: Moments
    expected: Array  # E[NS]
    hdi: Intervals
    above: Array  # P(NS > 2)
    linear_z: Array
    true_z: Array


def run(
    healthy: int = 1110,
    healthy_seed: int = 1,
    bicuspid: int = 351,
    bicuspid_seed: int = 2,
    fit_seed: int = 1,
    recipe: Recipe = RECIPE,
) -> dict[str, Any]:
    """Areas under the ROC curves, heat maps, counts and four patients, as plain numbers."""
    people, patients = simulate_cohort(healthy, healthy_seed), simulate_bicuspid(bicuspid, bicuspid_seed)
    models = {site: learn(people, site, recipe, fit_seed) for site in SITES}
    scored = {site: score_patients(found, patients, site) for site, found in models.items()}
    return {
        "healthy": {"people": healthy, "seed": healthy_seed},
        "bicuspid": {"people": bicuspid, "seed": bicuspid_seed},
        "fit_seed": fit_seed,
        "roc": {site: _roc(found, patients, site) for site, found in models.items()},
        "heatmaps": {site: heatmap(found.ns, people) for site, found in models.items()},
        "counts": {site: counts(own) for site, own in scored.items()},
        "patients": borderline(patients, scored),
    }


def _roc(models: Models, patients: SimulatedPeople, site: str) -> dict[str, Any]:
    """By the paper's label, an absolute size, and by the truth; and the patients about whom the two disagree."""
    measured, found = patients.sites[site], scores(models, patients, site)
    large, wide = measured.dilated, measured.true_z_mm > DILATED_Z
    return {
        "40 mm": ranked(large, found),
        "true z": ranked(wide, found),
        "large_yet_normal": int((large & ~wide).sum()),
        "small_yet_wide": int((~large & wide).sum()),
    }


def learn(people: SimulatedPeople, site: str, recipe: Recipe, seed: int) -> Models:
    """Every method gets the same covariates, age as its logarithm."""
    x, y = people.covariates("log"), people.sites[site].diameter_mm
    unsigned: dict[str, Method] = {"QCAD": Qcad(seed), "ROCOD": Rocod(seed)}
    for method in unsigned.values():
        method.fit(x, y)
    constant = replace(recipe, heteroscedastic=False)
    return Models(fit(x, y, recipe, seed).posterior, fit(x, y, constant, seed).posterior, fit_linear(x, y), unsigned)


def scores(models: Models, patients: SimulatedPeople, site: str) -> dict[str, Array]:
    """[N] by method, large for a wide aorta; then what no method can know, and what no method is needed for."""
    x, measured = patients.covariates("log"), patients.sites[site]
    y, linear = measured.diameter_mm, models.linear
    expected = normalcy.expected_score(y, models.ns.predict(x))
    return {
        NS: expected,
        "NS_hom": normalcy.expected_score(y, models.homoscedastic.predict(x)),
        "linear Z": linear.linear_z(x, y),
        "Altman": altman_z(linear, x, y),
        "NS, unsigned": np.abs(expected),
        **{name: method.answer(x, y)["score"] for name, method in models.unsigned.items()},
        "true z": measured.true_z_mm,
        "diameter": y,
    }


def ranked(label: NDArray[np.bool_], found: dict[str, Array]) -> dict[str, Any]:
    """The area of every score with its error, its difference from NS, and the corners of its curve."""
    names = list(found)
    areas = roc_areas(label, np.vstack(list(found.values())))
    methods = {
        name: {
            "area": float(areas.area[k]),
            "standard_error": float(areas.standard_error[k]),
            "versus_ns": _versus(areas, k, names.index(NS)) if name not in (NS, *UNTESTED) else None,
            "curve": _corners(label, found[name]),
        }
        for k, name in enumerate(names)
    }
    return {"positive": int(label.sum()), "negative": int((~label).sum()), "methods": methods}


def _versus(areas: RocAreas, method: int, ns: int) -> dict[str, float]:
    """NS less the method: positive where NS ranks better."""
    found = compare_areas(areas, ns, method)
    return {"difference": found.difference, "standard_error": found.standard_error, "p": found.p}


def _corners(label: NDArray[np.bool_], values: Array) -> dict[str, list[float]]:
    """The curve without the points that lie on a straight piece between their neighbours."""
    curve = roc_curve(label, values)
    dx, dy = np.diff(curve.x), np.diff(curve.y)
    turns = dx[:-1] * dy[1:] != dx[1:] * dy[:-1]
    kept = np.concatenate([[True], turns, [True]])
    return {"x": curve.x[kept].round(6).tolist(), "y": curve.y[kept].round(6).tolist()}


def heatmap(posterior: HeteroscedasticPosterior, people: SimulatedPeople) -> dict[str, Any]:
    """How wide the 95% HDI is over age and body surface area (BSA), at one diameter.

    By sex: i [ages, BSA] and the people that the model was trained on. The model knows height and weight, the picture
    only BSA. So a body of a given sex, age and BSA gets the height that the healthy people of that sex had on average,
    by least squares of log height on log BSA, its square and log age; the weight follows from Haycock's formula.
    """
    bsa = haycock_bsa_m2(people.height_cm, people.weight_kg)
    found: dict[str, Any] = {"diameter_mm": DIAMETER_MM, "age_years": AGES.tolist(), "bsa_m2": BSA_M2.tolist()}
    age_grid, bsa_grid = np.meshgrid(AGES, BSA_M2, indexing="ij")
    for sex, rows in ((Sex.MALE, people.male), (Sex.FEMALE, ~people.male)):
        height, weight = _bodies(people, bsa, rows, age_grid.ravel(), bsa_grid.ravel())
        male = np.full(height.size, float(sex is Sex.MALE))
        x = covariate_columns(age_grid.ravel(), male, height, weight, age="log")
        width = normalcy.hdi(DIAMETER_MM, posterior.predict(x)).width
        found[sex.value] = {
            "width": width.reshape(age_grid.shape).round(6).tolist(),
            "people": {"age_years": people.age_years[rows].tolist(), "bsa_m2": bsa[rows].round(4).tolist()},
        }
    return found | {"at_people": _at_people(posterior, people)}


def _at_people(posterior: HeteroscedasticPosterior, people: SimulatedPeople) -> dict[str, dict[str, float]]:
    """Medians over trained children and adults: i at this diameter, W2 (the width at a score of 2), and E[NS]."""
    moments = posterior.predict(people.covariates("log"))
    columns = {
        "i": normalcy.hdi(DIAMETER_MM, moments).width,
        "w2": normalcy.context_width(moments),
        "expected": normalcy.expected_score(DIAMETER_MM, moments),
    }
    child = people.age_years < ADULT_FROM_YEARS
    groups = {"children": child, "adults": ~child}
    return {
        group: {name: float(np.median(values[rows])) for name, values in columns.items()}
        for group, rows in groups.items()
    }


def _bodies(
    people: SimulatedPeople, bsa: Array, rows: NDArray[np.bool_], ages: Array, areas: Array
) -> tuple[Array, Array]:
    """Heights and weights of bodies of these ages and areas, as these rows of people have them."""
    design = _design(people.age_years[rows], bsa[rows])
    coefficients = np.linalg.lstsq(design, np.log(people.height_cm[rows]), rcond=None)[0]
    height = np.exp(_design(ages, areas) @ coefficients)
    return height, weight_of(height, areas)


def weight_of(height_cm: Array, bsa_m2: Array) -> Array:
    """Haycock's formula solved for the weight: at a given height the area is a power of the weight."""
    at_one_kg = haycock_bsa_m2(height_cm, np.ones_like(height_cm))
    power = np.log(haycock_bsa_m2(height_cm, np.full_like(height_cm, np.e)) / at_one_kg)
    weight: Array = (bsa_m2 / at_one_kg) ** (1.0 / power)
    return weight


def _design(age_years: Array, bsa_m2: Array) -> Array:
    area = np.log(bsa_m2)
    return np.column_stack([np.ones_like(area), area, area**2, np.log(age_years)])


def score_patients(models: Models, patients: SimulatedPeople, site: str) -> SiteScores:
    x, measured = patients.covariates("log"), patients.sites[site]
    y, moments = measured.diameter_mm, models.ns.predict(x)
    return SiteScores(
        diameter_mm=y,
        moments=moments,
        expected=normalcy.expected_score(y, moments),
        hdi=normalcy.hdi(y, moments),
        above=normalcy.sf(CUT, y, moments),
        linear_z=models.linear.linear_z(x, y),
        true_z=measured.true_z_mm,
    )


def counts(own: SiteScores) -> dict[str, Any]:
    """Of the patients with E[NS] < 2: how many may still exceed 2, and how many do."""
    below, truly = own.expected < CUT, own.true_z > CUT
    crossing = (own.hdi.low < CUT) & (own.hdi.high > CUT)
    covered = (own.hdi.low <= own.true_z) & (own.true_z <= own.hdi.high)
    return {
        "expected_below": int(below.sum()),
        "seen_by_sampling": int((below & (own.above >= SEEN_BY_SAMPLING)).sum()),
        "in_the_tail": int((below & (own.above >= IN_THE_TAIL)).sum()),
        "expected_to_exceed": float(own.above[below].sum()),
        "truly_exceed": int((below & truly).sum()),
        "normal_by_z_yet_crossing": int(((own.linear_z < CUT) & crossing).sum()),
        "true_z_covered": float(covered.mean()),
    }


def borderline(patients: SimulatedPeople, scored: dict[str, SiteScores]) -> list[dict[str, Any]]:
    """Four patients whom the linear Z-score calls normal while the interval of NS reaches beyond 2.

    Evenly spread over all such patients rather than picked.
    """
    doubt = np.max([_doubt(own) for own in scored.values()], axis=0)  # [N] -1 without doubt
    found = np.flatnonzero(doubt >= 0.0)
    order = found[np.argsort(doubt[found], kind="stable")]
    rows = (
        [int(order[int(position * len(order))]) for position in POSITIONS]
        if len(order) >= len(POSITIONS)
        else order.tolist()
    )
    return [_patient(patients, scored, row) for row in rows]


def _doubt(own: SiteScores) -> Array:
    """P(NS > 2) of patients whose linear Z is below 2 and whose interval crosses it."""
    crossing = (own.hdi.low < CUT) & (own.hdi.high > CUT)
    return np.where((own.linear_z < CUT) & crossing, own.above, -1.0)


def _patient(patients: SimulatedPeople, scored: dict[str, SiteScores], row: int) -> dict[str, Any]:
    return {
        "number": row + 1,
        "age_years": float(patients.age_years[row]),
        "sex": str(patients.sex[row]),
        "height_cm": float(patients.height_cm[row]),
        "weight_kg": float(patients.weight_kg[row]),
        "sites": {site: _at(own, row) for site, own in scored.items()},
    }


def _at(own: SiteScores, row: int) -> dict[str, Any]:
    low, high = float(own.hdi.low[row]), float(own.hdi.high[row])
    reach = DENSITY_REACH * (high - low)
    t = np.linspace(low - reach, high + reach, DENSITY_POINTS)
    one = slice(row, row + 1)
    moments = own.moments
    here = Moments(moments.m1[one], moments.v1[one], moments.m2[one], moments.v2[one])
    density = normalcy.pdf(t[:, None], own.diameter_mm[row], here)[:, 0]
    return {
        "diameter_mm": float(own.diameter_mm[row]),
        "expected": float(own.expected[row]),
        "low": low,
        "high": high,
        "above": float(own.above[row]),
        "linear_z": float(own.linear_z[row]),
        "true_z": float(own.true_z[row]),
        "t": t.round(6).tolist(),
        "density": density.round(6).tolist(),
    }
