"""Table 6: does i(x, y) rank contexts as detectors of sparse contexts do? W2 beside it."""

from app.benchmark.paper.contexts_alone import DETECTORS, sparseness
from app.benchmark.paper.study import Spread, Study, spread
from app.maths.statistics.metrics import weighted_kendall_tau

WIDTHS = {"i(x, y)": "width", "W2": "context_width"}


def kendall(study: Study) -> dict[str, dict[str, dict[str, Spread]]]:
    """width -> set -> detector -> weighted Kendall tau over the injections."""
    return {
        width: {name: {detector: _tau(study, name, detector, field) for detector in DETECTORS} for name in study.tables}
        for width, field in WIDTHS.items()
    }


def _tau(study: Study, name: str, detector: str, field: str) -> Spread:
    taus = []
    for seed in study.scope.seeds:
        pooled = study.pooled(name, "NS", seed)
        sparse = sparseness(study.tables[name].X, detector, seed)[pooled.rows]
        taus.append(weighted_kendall_tau(getattr(pooled, field), sparse))
    return spread(taus)
