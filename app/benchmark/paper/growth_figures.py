"""The picture of the growth chapter: what each detector flags, over age and height."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from app.benchmark.paper.canvas import page

FLAGGED: Any = {"facecolor": "none", "edgecolor": "0.6", "hatch": "////", "linewidth": 0.0}
UNSURE_WIDTHS = (2.0, 3.0, 4.0, 100.0)  # of i; the darker, the wider
UNSURE_SHADES = ("0.9", "0.78", "0.66")
UNSURE_WORDS = ("abstains: i > 2", "i > 3", "i > 4")


def regions(found: dict[str, Any], path: Path) -> None:
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
