"""The paper's Figure 1: girls who are too tall or too short for their age, by three kinds of detector.

Heights are drawn from the CDC 2000 tables (the paper's come from those of the WHO), ages as 4 + Exp(0.4) years, 0.4
being the rate, so that most girls are young. An isolation forest looks for rare pairs of age and height, ROCOD for
unusual heights with one spread for all ages, NS for unusual heights with the spread of each age.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.benchmark.paper.growth_detectors import Detectors
from app.benchmark.paper.growth_rates import mean_rates, rates
from app.domain.patient import Sex
from app.maths.moments import Array
from app.training.bodies import draw_until, growth_table, within
from app.training.recipe import Recipe

RECIPE = Recipe()
AGES = (4.0, 19.0)  # the tables end there
RATE = 0.4  # per year
WIDEST_Z = 4.0  # of the girls asked about
GRID_AGES = np.linspace(*AGES, 76)
GRID_HEIGHTS = np.linspace(85.0, 190.0, 71)


def run(
    seeds: Sequence[int] = (1, 2, 3, 4, 5), girls: int = 500, asked: int = 6000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """The picture is that of the first seed; the rates are means over all of them."""
    judged, drawn = [], dict[str, Any]()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        age, height = _trained_on(rng, girls)
        detectors = Detectors(age, height, recipe, seed)
        drawn = drawn or _picture(detectors, age, height)
        judged.append(rates(detectors, *_asked_about(rng, asked)))
    return {"seeds": list(seeds), "girls": girls, "asked": asked, "picture": drawn, "rates": mean_rates(judged)}


def _trained_on(rng: np.random.Generator, girls: int) -> tuple[Array, Array]:
    age = draw_until(lambda rows: AGES[0] + rng.exponential(1.0 / RATE, len(rows)), within(AGES), girls)
    return age, _height(age, rng.standard_normal(girls))


def _asked_about(rng: np.random.Generator, asked: int) -> tuple[Array, Array, Array]:
    """Ages, heights and true z: every age alike, and half of the girls beyond 2 standard deviations."""
    age, z = rng.uniform(*AGES, asked), rng.uniform(-WIDEST_Z, WIDEST_Z, asked)
    return age, _height(age, z), z


def _height(age: Array, z: Array) -> Array:
    return growth_table("stature", Sex.FEMALE).value(age, z)


def _picture(detectors: Detectors, age: Array, height: Array) -> dict[str, Any]:
    """What every detector says over a grid [ages, heights], and the true heights at z = -2 and 2."""
    ages, heights = (grid.ravel() for grid in np.meshgrid(GRID_AGES, GRID_HEIGHTS, indexing="ij"))
    shape = (GRID_AGES.size, GRID_HEIGHTS.size)
    margins = {name: margin(ages, heights).reshape(shape).round(4) for name, margin in detectors.margins.items()}
    return {
        "trained_on": {"age_years": age.round(3).tolist(), "height_cm": height.round(2).tolist()},
        "age_years": GRID_AGES.tolist(),
        "height_cm": GRID_HEIGHTS.tolist(),
        "margin": {name: values.tolist() for name, values in margins.items()},
        "width": detectors.width(ages, heights).reshape(shape).round(4).tolist(),
        "true_height_cm": {
            f"{z:+.0f}": _height(GRID_AGES, np.full(GRID_AGES.size, z)).round(3).tolist() for z in (-2.0, 2.0)
        },
    }
