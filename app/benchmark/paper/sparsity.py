"""Table 6: does i(x, y) rank contexts as detectors of sparse contexts do? W2 beside it."""

from app.benchmark.paper.methods import CONTEXT_DETECTORS, sparseness
from app.benchmark.paper.published import KENDALL
from app.benchmark.paper.rendering import WORSE, Prose, counted, mark, pair, table_text
from app.benchmark.paper.study import Spread, Study, spread
from app.maths.statistics import weighted_kendall_tau

WIDTHS = {"i(x, y)": "width", "W2": "context_width"}

Taus = dict[str, dict[str, dict[str, Spread]]]  # width -> set -> detector -> weighted Kendall tau over the injections


def kendall(study: Study) -> Taus:
    return {
        width: {
            name: {detector: _tau(study, name, detector, field) for detector in CONTEXT_DETECTORS}
            for name in study.tables
        }
        for width, field in WIDTHS.items()
    }


def _tau(study: Study, name: str, detector: str, field: str) -> Spread:
    taus = []
    for seed in study.scope.seeds:
        pooled = study.pooled(name, "NS", seed)
        sparse = sparseness(study.tables[name].X, detector, seed)[pooled.rows]
        taus.append(weighted_kendall_tau(getattr(pooled, field), sparse))
    return spread(taus)


def render(found: Taus) -> str:
    detectors = list(next(iter(KENDALL.values())))
    width, w2 = found["i(x, y)"], found["W2"]
    body = [
        [name, *(_cell(taus[one], KENDALL[name][one], w2[name][one]) for one in detectors)]
        for name, taus in width.items()
    ]
    cells = [(name, one) for name in width for one in detectors]
    marks = [mark(width[name][one], KENDALL[name][one]) for name, one in cells]
    return Prose("sparsity")(
        "chapter",
        table=table_text(["set", *detectors], body),
        counted=counted(marks),
        larger=sum(w2[name][one].mean > width[name][one].mean for name, one in cells),
        cells=len(cells),
        w2_worse=sum(mark(w2[name][one], KENDALL[name][one]) == WORSE for name, one in cells),
    )


def sentence(found: Taus) -> str:
    marks = [mark(tau, KENDALL[name][one]) for name, taus in found["i(x, y)"].items() for one, tau in taus.items()]
    return Prose("sparsity")("in_short", counted=counted(marks))


def _cell(ours: Spread, published: float, w2: Spread) -> str:
    return f"{pair(ours)} · {published:.2f} · {mark(ours, published)} · [{w2.mean:.3f}]"
