"""The pictures of the clinical chapter: ROC curves, heat maps of i, four patients."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm

from app.benchmark.paper.canvas import page

STROKES = {
    "NS": ("black", "-", 1.8),
    "NS_hom": ("0.45", "-", 1.0),
    "linear Z": ("black", "--", 1.2),
    "Altman": ("black", ":", 1.4),
    "QCAD": ("0.6", "-.", 1.4),
    "ROCOD": ("0.45", (0, (6, 2, 1, 2, 1, 2)), 1.2),
    "true z": ("0.75", "-", 2.6),
}
NAMES = {"NS_hom": r"NS$_\mathrm{hom}$"}
LABELS = {"40 mm": "dilated: 40 mm or more", "true z": "dilated: true z above 2 (corner enlarged)"}
CORNERS = {"40 mm": 1.0, "true z": 0.3}  # how much of either axis is shown
WIDTHS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of i; darker is wider
NAMED_WIDTHS = (0.5, 1.0, 2.0)


def roc(found: dict[str, Any], path: Path) -> None:
    """A column for each site, a row for each label."""
    with page(path, 7.0, 7.2) as figure:
        grid = figure.subplots(2, len(found), squeeze=False)
        for column, (site, labels) in enumerate(found.items()):
            for row, (label, words) in enumerate(LABELS.items()):
                axes = grid[row, column]
                _curves(axes, labels[label]["methods"], CORNERS[label])
                axes.set_title(f"{site}, {words}", fontsize=9)


def _curves(axes: Axes, methods: dict[str, Any], shown: float) -> None:
    axes.plot([0, 1], [0, 1], color="0.85", linewidth=0.8)
    for name, (shade, dash, weight) in STROKES.items():
        curve, area = methods[name]["curve"], methods[name]["area"]
        style: Any = {"color": shade, "linestyle": dash, "linewidth": weight, "zorder": 1 if name == "true z" else 2}
        axes.plot(curve["x"], curve["y"], label=f"{NAMES.get(name, name)}, {area:.3f}", **style)
    margin = 0.01 * shown
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    axes.set(xlim=(-margin, shown), ylim=(1.0 - shown, 1.0 + margin))
    axes.legend(frameon=False, loc="lower right", fontsize=8, title="area", title_fontsize=8)


def heatmaps(found: dict[str, Any], path: Path) -> None:
    """A row for each site, a column for each sex; the dots are the people of training."""
    with page(path, 7.0, 6.4) as figure:
        grid = figure.subplots(len(found), 2, sharex=True, sharey=True, squeeze=False)
        for row, (site, maps) in enumerate(found.items()):
            for column, (sex, words) in enumerate((("male", "men and boys"), ("female", "women and girls"))):
                axes = grid[row, column]
                shades = _map(axes, maps, maps[sex])
                axes.set_title(f"{site}, {words}", fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("age, years")
        for axes in grid[:, 0]:
            axes.set_ylabel("body surface area, m²")
        figure.colorbar(
            shades, ax=grid, label="i, the width of the 95% HDI of NS (standard deviations)", shrink=0.8, aspect=35
        )


def _map(axes: Axes, maps: dict[str, Any], own: dict[str, Any]) -> Any:
    ages, areas, width = maps["age_years"], maps["bsa_m2"], np.array(own["width"]).T
    norm = BoundaryNorm(WIDTHS, 256, extend="both")
    shades = axes.contourf(ages, areas, width, levels=WIDTHS, cmap="YlOrRd", norm=norm, extend="both")
    lines = axes.contour(ages, areas, width, levels=NAMED_WIDTHS, colors="black", linewidths=0.6)
    axes.plot(own["people"]["age_years"], own["people"]["bsa_m2"], ".", color="0.2", markersize=1.2)
    for name in axes.clabel(lines, fmt="%g", fontsize=7):
        name.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    return shades


def patients(found: list[dict[str, Any]], path: Path) -> None:
    """Each with the density of NS at both sites, its HDI, E[NS], the linear Z, the truth, and the cut-off."""
    ends = [own["t"][end] for patient in found for own in patient["sites"].values() for end in (0, -1)]
    with page(path, 7.2, 5.6) as figure:
        grid = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
        for axes, patient in zip(grid, found, strict=False):
            _patient(axes, patient)
        grid[0].set(xlim=(min([*ends, 2.0]) - 2.0, max([*ends, 2.0]) + 0.2))  # room for words on the left
        for axes in grid[2:]:
            axes.set_xlabel("score, standard deviations")
        handles, names = grid[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False, fontsize=8)


def _patient(axes: Axes, patient: dict[str, Any]) -> None:
    sites = patient["sites"]
    for place, own in enumerate(reversed(sites.values())):
        _score(axes, own, place)
        words = f"P(NS > 2) {_probability(own['above'])}\n{own['diameter_mm']:.2f} mm"
        axes.text(0.02, place + 0.3, words, fontsize=7.5, transform=axes.get_yaxis_transform())
    axes.axvline(2.0, color="black", linewidth=0.8, linestyle="--")
    words = "man" if patient["sex"] == "male" else "woman"
    axes.set_title(f"patient {patient['number']}: {words}, {patient['age_years']:.0f} years", fontsize=9)
    axes.set(yticks=range(len(sites)), yticklabels=list(reversed(sites)), ylim=(-0.35, 1.8))


def _score(axes: Axes, own: dict[str, Any], place: int) -> None:
    density = np.array(own["density"])
    # Only the lowest one is named, so that the legend says each thing once.
    names = ("density of NS", "95% HDI", "E[NS]", "linear Z", "true z") if place == 0 else ("_",) * 5
    axes.fill_between(own["t"], place, place + 0.62 * density / density.max(), color="0.85", label=names[0])
    axes.hlines(place, own["low"], own["high"], color="black", linewidth=2.0, label=names[1])
    axes.plot(own["expected"], place, "o", color="black", markersize=5, label=names[2])
    axes.plot(own["linear_z"], place, "x", color="black", markersize=6, zorder=4, label=names[3])
    axes.plot(own["true_z"], place - 0.12, "^", color="0.4", markersize=5, label=names[4])


def _probability(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.0005 else "< 0.001"
