"""The picture of the slip's chapter: what an interval promises and holds, and what a probability does."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from app.benchmark.paper.canvas import page

STROKES = {
    "formulas": ("black", "-", "o"),
    "slip, in mm": ("0.35", "--", "s"),
    "slip, standardised": ("0.55", ":", "^"),
}


def promises(found: dict[str, Any], path: Path) -> None:
    with page(path, 7.0, 3.6) as figure:
        held, probable = figure.subplots(1, 2)
        for way, own in found["ways"].items():
            _coverage(held, found["masses"], own["coverage"], way)
            _probabilities(probable, own, way)
        held.set(xlabel="promised: mass of the HDI, %", ylabel="held: true z inside, % of healthy")
        probable.set(xlabel="patients: mean P(NS > 2), %", ylabel="true z above 2, % of patients")
        for axes in (held, probable):
            axes.plot([0, 100], [0, 100], color="0.85", linewidth=0.8, zorder=0)
            axes.set(xlim=(-2, 102), ylim=(-2, 102), aspect="equal")
        held.legend(frameon=False, loc="upper left", fontsize=8)


def _coverage(axes: Axes, masses: list[float], coverage: dict[str, list[float]], way: str) -> None:
    shade, dash, mark = STROKES[way]
    mean, error = (100.0 * np.array(coverage[name]) for name in ("mean", "standard_error"))
    places = 100.0 * np.array(masses)
    axes.errorbar(
        places, mean, 1.96 * error, color=shade, linestyle=dash, marker=mark, markersize=4, capsize=2, label=way
    )


def _probabilities(axes: Axes, own: dict[str, Any], way: str) -> None:
    shade, dash, mark = STROKES[way]
    people = np.array(own["bin_people"])
    some = people > 0
    said, true = (100.0 * np.array(own[name])[some] / people[some] for name in ("bin_probability", "bin_truly_above"))
    error = 100.0 * np.sqrt(true / 100.0 * (1.0 - true / 100.0) / people[some])  # of a share
    axes.errorbar(said, true, 1.96 * error, color=shade, linestyle=dash, marker=mark, markersize=4, capsize=2)
