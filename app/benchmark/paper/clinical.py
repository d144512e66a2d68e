"""The paper's clinical experiment on simulated people: trained on healthy ones, asked about bicuspid patients.

The paper's 1110 healthy people and 351 patients are private; here as many are drawn from published equations, so the
true z of every patient is known. Training and test share one generator: this shows how the method behaves, and does
not repeat the paper's clinical results.
"""

from typing import Any

from app.benchmark.paper.clinical_heatmap import heatmap
from app.benchmark.paper.clinical_models import Models, learn
from app.benchmark.paper.clinical_patients import borderline, counts, read
from app.benchmark.paper.clinical_roc import ranked, scores
from app.training.cohort import SITES, SimulatedPeople, simulate_bicuspid, simulate_cohort
from app.training.recipe import Recipe

RECIPE = Recipe()
DILATED_Z = 2.0


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
    readings = {site: read(found, patients, site) for site, found in models.items()}
    return {
        "healthy": {"people": healthy, "seed": healthy_seed},
        "bicuspid": {"people": bicuspid, "seed": bicuspid_seed},
        "fit_seed": fit_seed,
        "roc": {site: _roc(found, patients, site) for site, found in models.items()},
        "heatmaps": {site: heatmap(found.ns, people) for site, found in models.items()},
        "counts": {site: counts(reading) for site, reading in readings.items()},
        "patients": borderline(patients, readings),
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
