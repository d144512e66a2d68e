"""What healthy people teach about one site: NS, its homoscedastic variant, the regressions, QCAD and ROCOD."""

from dataclasses import dataclass, replace

from app.benchmark.paper.methods import Method
from app.benchmark.paper.methods.qcad import Qcad
from app.benchmark.paper.methods.rocod import Rocod
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.statistics.linear import LinearReference, fit_linear
from app.training.cohort import SimulatedPeople
from app.training.fit import fit
from app.training.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Models:
    ns: HeteroscedasticPosterior
    homoscedastic: HeteroscedasticPosterior
    linear: LinearReference
    unsigned: dict[str, Method]  # these score an aorta as much too narrow the same


def learn(people: SimulatedPeople, site: str, recipe: Recipe, seed: int) -> Models:
    """Every method gets the same covariates, age as its logarithm."""
    x, y = people.covariates("log"), people.sites[site].diameter_mm
    unsigned: dict[str, Method] = {"QCAD": Qcad(seed), "ROCOD": Rocod(seed)}
    for method in unsigned.values():
        method.fit(x, y)
    constant = replace(recipe, heteroscedastic=False)
    return Models(fit(x, y, recipe, seed).posterior, fit(x, y, constant, seed).posterior, fit_linear(x, y), unsigned)
