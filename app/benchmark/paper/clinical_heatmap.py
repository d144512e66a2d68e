"""How wide the 95% HDI is over age and body surface area (BSA), at one diameter.

The model knows height and weight, the picture only BSA. So a body of a given sex, age and BSA gets the height that the
healthy people of that sex had on average, by least squares of log height on log BSA, its square and log age; the
weight follows from Haycock's formula.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.context import covariate_columns
from app.domain.patient import Sex, haycock_bsa_m2
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array
from app.maths.score import normalcy
from app.training.bodies import ADULT_FROM_YEARS
from app.training.cohort import SimulatedPeople

DIAMETER_MM = 32.0  # as in the paper
AGES = np.linspace(5.0, 85.0, 41)
BSA_M2 = np.linspace(0.6, 2.6, 41)


def heatmap(posterior: HeteroscedasticPosterior, people: SimulatedPeople) -> dict[str, Any]:
    """By sex: i [ages, BSA] and the people that the model was trained on."""
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
    """Haycock's formula turned round: at a given height the area is a power of the weight."""
    at_one_kg = haycock_bsa_m2(height_cm, np.ones_like(height_cm))
    power = np.log(haycock_bsa_m2(height_cm, np.full_like(height_cm, np.e)) / at_one_kg)
    weight: Array = (bsa_m2 / at_one_kg) ** (1.0 / power)
    return weight


def _design(age_years: Array, bsa_m2: Array) -> Array:
    area = np.log(bsa_m2)
    return np.column_stack([np.ones_like(area), area, area**2, np.log(age_years)])
