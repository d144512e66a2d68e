"""The paper's Figure 1: girls who are too tall or too short for their age, by three kinds of detector.

Heights are drawn from the CDC 2000 tables (the paper's come from those of the WHO), ages as 4 + Exp(0.4) years, 0.4
being the rate, so that most girls are young. An isolation forest looks for rare pairs of age and height, ROCOD for
unusual heights with one spread for all ages, NS for unusual heights with the spread of each age.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from app.benchmark.paper.methods import IsolationForest, Rocod
from app.benchmark.paper.protocol import Method
from app.benchmark.paper.rendering import Prose, page, table_text
from app.domain.patient import Sex
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.training.cohort import draw_until, growth_table, within
from app.training.fit import fit
from app.training.recipe import Recipe

RECIPE = Recipe()
AGES = (4.0, 19.0)  # the tables end there
RATE = 0.4  # per year
WIDEST_Z = 4.0  # of the girls that the detectors are tested on
GRID_AGES = np.linspace(*AGES, 76)
GRID_HEIGHTS = np.linspace(85.0, 190.0, 71)
OUTLYING_Z = 2.0
OUTLYING_SHARE = 0.0455  # of a normal distribution, beyond 2 standard deviations on either side
Margin = Callable[[Array, Array], Array]  # ages [N], heights [N]
TOO_WIDE = 2.0  # the width at which NS abstains, as in the paper
BANDS = ((4.0, 8.0), (8.0, 12.0), (12.0, 19.0))
Mask = NDArray[np.bool_]
Rates = dict[str, Array]  # [bands] by what is counted
FLAGGED: Any = {"facecolor": "none", "edgecolor": "0.6", "hatch": "////", "linewidth": 0.0}
UNSURE_WIDTHS = (2.0, 3.0, 4.0, 100.0)  # of i; the darker, the wider
UNSURE_SHADES = ("0.9", "0.78", "0.66")
UNSURE_WORDS = ("abstains: i > 2", "i > 3", "i > 4")


class Detectors:
    """Three detectors of unusual heights, each as a margin that is positive where it flags a girl.

    Trained on ages [N] and heights [N].
    """

    def __init__(self, age: Array, height: Array, recipe: Recipe, seed: int) -> None:
        self._posterior = fit(age[:, None], height, recipe, seed).posterior
        others: dict[str, Method] = {"IForest": IsolationForest(seed), "ROCOD": Rocod(seed)}
        learnt: dict[str, Margin] = {name: _margin(method, age, height) for name, method in others.items()}
        self.margins = learnt | {"NS": self._ns}

    def width(self, age: Array, height: Array) -> Array:
        """i, the width of the 95% HDI."""
        return np.asarray(normalcy.hdi(height, self._moments(age)).width)

    def context_width(self, age: Array) -> Array:
        """W2, the same at a score of 2: the context alone decides it."""
        return normalcy.context_width(self._moments(age))

    def _ns(self, age: Array, height: Array) -> Array:
        """NS has a scale of its own: beyond 2 is outlying."""
        return np.abs(normalcy.expected_score(height, self._moments(age))) - OUTLYING_Z

    def _moments(self, age: Array) -> Moments:
        return self._posterior.predict(age[:, None])


def _margin(method: Method, age: Array, height: Array) -> Margin:
    """Beyond the score that as many trained girls exceed as a normal distribution has beyond 2 sds."""
    method.fit(age[:, None], height)
    limit = np.quantile(method.answer(age[:, None], height)["score"], 1.0 - OUTLYING_SHARE)
    return lambda ages, heights: method.answer(ages[:, None], heights)["score"] - limit


def run(
    seeds: Sequence[int] = (1, 2, 3, 4, 5), girls: int = 500, tested: int = 6000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """The picture is that of the first seed; the rates are means over all of them."""
    judged, drawn = [], dict[str, Any]()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        age, height = _trained_on(rng, girls)
        detectors = Detectors(age, height, recipe, seed)
        drawn = drawn or _picture(detectors, age, height)
        judged.append(rates(detectors, *_test_girls(rng, tested)))
    return {"seeds": list(seeds), "girls": girls, "tested": tested, "picture": drawn, "rates": mean_rates(judged)}


def _trained_on(rng: np.random.Generator, girls: int) -> tuple[Array, Array]:
    age = draw_until(lambda rows: AGES[0] + rng.exponential(1.0 / RATE, len(rows)), within(AGES), girls)
    return age, _height(age, rng.standard_normal(girls))


def _test_girls(rng: np.random.Generator, tested: int) -> tuple[Array, Array, Array]:
    """Ages, heights and true z: every age alike, and half of the girls beyond 2 standard deviations."""
    age, z = rng.uniform(*AGES, tested), rng.uniform(-WIDEST_Z, WIDEST_Z, tested)
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


def rates(detectors: Detectors, age: Array, height: Array, z: Array) -> dict[str, Rates]:
    """How often the detectors are wrong, by age.

    Of all girls; then of those about whom NS does not abstain, by i and by W2.
    """
    outlying, everybody = np.abs(z) > OUTLYING_Z, np.ones(age.size, dtype=bool)
    flagged = {name: margin(age, height) > 0.0 for name, margin in detectors.margins.items()}
    found = {name: _rates(flags, outlying, age, everybody) for name, flags in flagged.items()}
    sure = {"i": detectors.width(age, height) <= TOO_WIDE, "W2": detectors.context_width(age) <= TOO_WIDE}
    kept = {f"NS, abstaining by {by}": _rates(flagged["NS"], outlying, age, rows) for by, rows in sure.items()}
    return found | kept


def mean_rates(rounds: Sequence[dict[str, Rates]]) -> dict[str, Any]:
    """Means over the rounds and their standard errors, by age band."""
    found = {
        name: {what: _mean(np.array([round_[name][what] for round_ in rounds])) for what in rounds[0][name]}
        for name in rounds[0]
    }
    return {"bands": [list(band) for band in BANDS], "methods": found}


def _rates(flagged: Mask, outlying: Mask, age: Array, answered: Mask) -> Rates:
    return {
        "false_alarms": _by_band(flagged, age, answered & ~outlying),
        "missed": _by_band(~flagged, age, answered & outlying),
        "unanswered": _by_band(~answered, age, np.ones(age.size, dtype=bool)),
    }


def _by_band(what: Mask, age: Array, among: Mask) -> Array:
    """[bands] shares; NaN where a band is empty."""
    rows = [among & (age >= low) & (age < high) for low, high in BANDS]
    return np.array([what[here].mean() if here.any() else np.nan for here in rows])


def _mean(values: Array) -> dict[str, list[float | None]]:
    """Of values [rounds, bands], without the rounds in which a band was empty; None where it always was."""
    known = [column[np.isfinite(column)] for column in values.T]
    return {
        "mean": [float(column.mean()) if column.size else None for column in known],
        "standard_error": [
            float(column.std(ddof=1) / column.size**0.5) if column.size > 1 else None for column in known
        ],
    }


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the picture goes into the folder."""
    draw_regions(result["picture"], folder / "growth.svg")
    rates = result["rates"]
    oldest, ages = rates["bands"][-1][0], result["picture"]["trained_on"]["age_years"]
    forest, rocod, ns = (rates["methods"][name] for name in ("IForest", "ROCOD", "NS"))
    by_i, by_w2 = (rates["methods"][f"NS, abstaining by {by}"] for by in ("i", "W2"))
    return Prose("growth")(
        "chapter",
        girls=result["girls"],
        tested=result["tested"],
        seeds=len(result["seeds"]),
        first_seed=result["seeds"][0],
        table=_table(rates),
        few=sum(age >= oldest for age in ages),
        trained=len(ages),
        forest_alarms=_last(forest, "false_alarms"),
        forest_missed=_first(forest, "missed"),
        rocod_missed=_first(rocod, "missed"),
        rocod_alarms=_last(rocod, "false_alarms"),
        ns_alarms_young=_first(ns, "false_alarms"),
        ns_missed_young=_first(ns, "missed"),
        ns_alarms_old=_last(ns, "false_alarms"),
        ns_missed_old=_last(ns, "missed"),
        by_i_unanswered=_last(by_i, "unanswered"),
        by_i_alarms=_last(by_i, "false_alarms"),
        by_i_missed=_last(by_i, "missed"),
        by_w2_unanswered=_last(by_w2, "unanswered"),
        by_w2_alarms=_last(by_w2, "false_alarms"),
        by_w2_missed=_last(by_w2, "missed"),
    )


def headline(result: dict[str, Any]) -> str:
    methods = result["rates"]["methods"]
    parts = ", ".join(
        f"{name} {_first(methods[name], 'missed')} and {_last(methods[name], 'false_alarms')}"
        for name in ("IForest", "ROCOD", "NS")
    )
    return Prose("growth")("headline", parts=parts)


def _table(rates: dict[str, Any]) -> str:
    bands = [f"{low:.0f} to {high:.0f} y" for low, high in rates["bands"]]
    heads = [f"{what}, {band}" for what in ("false alarms", "missed") for band in bands] + [f"no answer, {bands[-1]}"]
    return table_text(["", *heads], ([name, *_row(own)] for name, own in rates["methods"].items()))


def _row(own: dict[str, Any]) -> list[str]:
    return [*_cells(own["false_alarms"]), *_cells(own["missed"]), list(_cells(own["unanswered"]))[-1]]


def _cells(share: dict[str, list[float | None]]) -> Iterator[str]:
    for mean, error in zip(share["mean"], share["standard_error"], strict=True):
        if mean is None:
            yield "–"
        elif error is None:
            yield f"{100 * mean:.1f}"
        else:
            yield f"{100 * mean:.1f} ± {100 * error:.1f}"


def _first(own: dict[str, Any], what: str) -> str:
    return _percent(own[what]["mean"][0])


def _last(own: dict[str, Any], what: str) -> str:
    return _percent(own[what]["mean"][-1])


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f}%"


def draw_regions(found: dict[str, Any], path: Path) -> None:
    """One panel a detector, with the girls it was trained on and the true bounds."""
    with page(path, 7.4, 3.3) as figure:
        grid = figure.subplots(1, len(found["margin"]), sharex=True, sharey=True)
        for axes, (name, margin) in zip(grid, found["margin"].items(), strict=True):
            if name == "NS":
                _unsure(axes, found)
            _panel(axes, found, np.array(margin).T)
            axes.set(title=name, xlabel="age, years")
        grid[0].set_ylabel("height, cm")
        bounds = next(line for line in grid[0].lines if line.get_label() == "true z = ±2")
        girls = next(line for line in grid[0].lines if line.get_label() == "trained on")
        handles = [
            Patch(**FLAGGED, label="flagged"),
            *(Patch(color=shade, label=words) for shade, words in zip(UNSURE_SHADES, UNSURE_WORDS, strict=True)),
            bounds,
            girls,
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=8)


def _panel(axes: Axes, found: dict[str, Any], margin: Any) -> None:
    ages, heights = found["age_years"], found["height_cm"]
    hatched = axes.contourf(ages, heights, margin, levels=[0.0, np.inf], colors="none", hatches=[FLAGGED["hatch"]])
    hatched.set(edgecolor=FLAGGED["edgecolor"], linewidth=0.0)
    axes.contour(ages, heights, margin, levels=[0.0], colors="0.45", linewidths=0.7)
    girls = found["trained_on"]
    axes.plot(girls["age_years"], girls["height_cm"], ".", color="black", markersize=1.5, label="trained on")
    for curve in found["true_height_cm"].values():
        axes.plot(ages, curve, color="black", linewidth=1.4, linestyle="--", label="true z = ±2")
    axes.set(xlim=(ages[0], ages[-1]), ylim=(heights[0], heights[-1]))


def _unsure(axes: Axes, found: dict[str, Any]) -> None:
    width = np.array(found["width"]).T
    axes.contourf(found["age_years"], found["height_cm"], width, levels=UNSURE_WIDTHS, colors=UNSURE_SHADES)
