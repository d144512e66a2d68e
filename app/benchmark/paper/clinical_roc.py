"""How each score ranks the patients, by the area under its ROC curve and DeLong's test against NS."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.benchmark.paper.clinical_models import Models
from app.benchmark.paper.methods.linear import altman_z
from app.maths.moments import Array
from app.maths.score import normalcy
from app.maths.statistics.metrics import RocAreas, compare_areas, roc_areas, roc_curve
from app.training.cohort import SimulatedPeople

NS = "NS"
UNTESTED = ("true z", "diameter")  # one defines a label, so DeLong's error of its area is 0


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
