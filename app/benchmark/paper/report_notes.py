"""The closing chapter on the UCI sets: what differs from the paper and why, what was tried and did not help."""

from app.benchmark.paper.choice import Judged
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.measured import Measured
from app.benchmark.paper.methods.qcad import TREES
from app.benchmark.paper.methods.rocod import REACH

# One look at the linear Z-score before any fit of NS: generators, orders of drawing and splits, 112 combinations of the
# same protocol. (smallest, largest) PR AUC of a row of five injections. Not part of this command.
WAYS_OF_DRAWING = 112
RANGES = {"Abalone": (0.54, 0.70), "Concrete": (0.50, 0.62), "Toxicity": (0.57, 0.74), "Yacht": (0.42, 0.71)}


def notes(found: Measured) -> list[str]:
    lines = ["## What differs from the paper, and why", "", *_training(), *_comparators(), ""]
    if found.table2 and {"NS", "NS_hom"} <= found.table2.keys():
        lines += [*_ranking(found.table2), ""]
    return [*lines, "## What was tried, also without success", "", *_tried(found.judged), ""]


def _training() -> list[str]:
    return [
        "- **Training.** The paper: natural gradient and Adam, up to 40,000 epochs, raw contexts, inducing points from "
        "the first 5 % of the rows, no priors. Here: full-batch L-BFGS in stages, contexts and y standardised on the "
        "training rows, inducing points from k-means and trained, priors on the kernels. So a row of NS here "
        "says what the model can do, not what the paper's optimiser made of it.",
        "- **Scale of NS.** After a Student-t stage with 6 degrees of freedom exp(f2) is the scale of that "
        "distribution; its standard deviation is sqrt(6/4) = 1.22 times larger. A factor changes no ranking, "
        "but |E[NS]| in this report must not be read as a z-score. The shipped models do not use that stage.",
        "- **Standard deviations** here are over injections with n - 1 in the denominator; the paper does not say.",
    ]


def _comparators() -> list[str]:
    return [
        f"- **QCAD** grows one forest of {TREES} trees on all training rows; the original grows a small forest for "
        "every row on the nearest half of the data. **ROCOD** takes as neighbours the training rows within a Gower "
        f"distance of {REACH} and a line as its global model. Both are written from their descriptions, so their rows "
        "compare methods, not programs.",
        "- **Altman**: a fitted spread under a quarter of the overall one is replaced by that quarter; the paper does "
        "not say what it does where the line crosses zero.",
        "- **IForest, LOF, HBOS** see contexts as published beside y in [0, 1], with PyOD's defaults.",
        "- **The draw of anomalies** is not that of the paper, whose generator is not known; the chapter on the linear "
        "Z-score says what that is worth.",
    ]


def _ranking(rows: dict[str, Rowwise]) -> list[str]:
    sets = list(rows["NS"])
    first = {area: [name for name in sets if _best(rows, name, area)] for area in ("roc", "pr")}
    gains = ", ".join(
        f"{name} {rows['NS'][name].roc.mean - rows['NS_hom'][name].roc.mean:+.3f} / "
        f"{rows['NS'][name].pr.mean - rows['NS_hom'][name].pr.mean:+.3f}"
        for name in sets
    )
    return [
        f"NS has the largest ROC AUC of all methods on {len(first['roc'])} of {len(sets)} sets "
        f"({', '.join(first['roc']) or 'none'}) and the largest PR AUC on {len(first['pr'])} "
        f"({', '.join(first['pr']) or 'none'}), ties in three decimals counted.  ",
        f"What a spread that depends on the context adds, NS minus NS_hom, ROC / PR AUC: {gains}.",
    ]


def _best(rows: dict[str, Rowwise], name: str, area: str) -> bool:
    means = {method: round(getattr(row[name], area).mean, 3) for method, row in rows.items()}
    return bool(means["NS"] >= max(means.values()))


def _tried(judged: Judged) -> list[str]:
    ranks = sorted(zip(judged.mean_rank, (one.name for one in judged.candidates), strict=True))
    (best, winner), (second, runner_up) = ranks[0], ranks[1] if len(ranks) > 1 else ranks[0]
    ranges = ", ".join(f"{name} {low:.2f}–{high:.2f}" for name, (low, high) in RANGES.items())
    return [
        f"- **Recipes**: {len(ranks)} candidates, see the table of inner folds. {winner} has the mean rank {best:.2f}, "
        f"{runner_up} {second:.2f}: a difference of {second - best:.2f} in the mean of {2 * len(judged.sets)} ranks.",
        *_logarithms(judged),
        f"- **Ways to draw.** Before any fit, {WAYS_OF_DRAWING} combinations of generator, order of draws and way to "
        f"split were compared on the linear Z-score. The PR AUC of a row of five ranged over {ranges}. The plainest is "
        "used (rows, then sizes, then signs, from NumPy's default generator), not the one nearest to the paper. This "
        "comparison is not part of the command.",
    ]


def _logarithms(judged: Judged) -> list[str]:
    names = [one.name for one in judged.candidates]
    pairs = [(names.index(name), names.index(f"{name}-log")) for name in names if f"{name}-log" in names]
    if not pairs:
        return []
    moved = [
        f"{names[plain]} on {judged.sets[column]} {judged.roc[log, column] - judged.roc[plain, column]:+.3f} / "
        f"{judged.pr[log, column] - judged.pr[plain, column]:+.3f}"
        for plain, log in pairs
        for column in range(len(judged.sets))
        if judged.roc[log, column] != judged.roc[plain, column]
    ]
    return [
        f"- **Logarithms of skewed contexts** changed these inner areas (ROC / PR AUC): {', '.join(moved) or 'none'}."
    ]
