"""The figures of the UCI part. Readable in grey: ours filled, the paper's hollow; lines differ by dash and marker."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from app.benchmark.paper.abstention import ANONYMOUS, BY_FOREST, BY_MEAN, BY_W2, BY_WIDTH, Kept, WidthByScore
from app.benchmark.paper.canvas import page
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.published import TABLE2

MARKERS = ("o", "s", "^", "D", "v")
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


def detection(path: Path, rows: Rowwise, fresh: Rowwise | None) -> None:
    """NS by set: ours on the paper's seeds, on fresh ones, and the paper's, with standard deviations."""
    with page(path, 7.0, 3.0) as figure:
        for axes, area, title in zip(figure.subplots(1, 2), (0, 1), ("ROC AUC", "PR AUC"), strict=True):
            _points(axes, rows, area, -0.2, "ours", "o", "black")
            if fresh:
                _points(axes, fresh, area, 0.0, "ours, fresh seeds", "s", "0.5")
            places = np.arange(len(rows)) + 0.2
            means, sds = zip(*(TABLE2["NS"][name][area] for name in rows), strict=True)
            axes.errorbar(places, means, sds, fmt="D", color="0.3", mfc="white", ms=4, lw=0.9, label="paper")
            axes.set(ylabel=f"{title} (no unit)", xticks=np.arange(len(rows)))
            axes.set_xticklabels(list(rows), rotation=30, ha="right")
        figure.axes[1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _points(axes: Axes, rows: Rowwise, area: int, shift: float, label: str, marker: str, shade: str) -> None:
    spreads = [(one.roc, one.pr)[area] for one in rows.values()]
    places, means = np.arange(len(rows)) + shift, [one.mean for one in spreads]
    axes.errorbar(places, means, [one.sd for one in spreads], fmt=marker, color=shade, ms=4, lw=0.9, label=label)


def abstention(path: Path, found: dict[str, dict[str, Kept]]) -> None:
    """What abstaining does to the PR AUC, by way and set."""
    with page(path, 6.0, 2.8) as figure:
        axes = figure.subplots()
        for place, (way, marker) in enumerate(zip((BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN), MARKERS, strict=False)):
            gain = [ways[way].pr.mean - ways[ANONYMOUS].pr.mean for ways in found.values()]
            shade = ("black", "0.6", "0.35", "black")[place]
            filled = "white" if way == BY_MEAN else shade
            axes.plot(
                np.arange(len(found)) + 0.18 * (place - 1.5), gain, marker, color=shade, mfc=filled, label=f"by {way}"
            )
        axes.axhline(0.0, color="0.7", linewidth=0.8)
        axes.set(xticks=np.arange(len(found)), ylabel="change of PR AUC (no unit)")
        axes.set_xticklabels(list(found))
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="5% dropped")


def width_by_score(path: Path, found: dict[str, WidthByScore]) -> None:
    """i(x, y) grows with |E[NS]|."""
    with page(path, 5.4, 3.2) as figure:
        axes = figure.subplots()
        for (name, one), marker, dash in zip(found.items(), MARKERS, DASHES, strict=False):
            middles = [0.5 * (low + high) for low, high in pairwise(one.edges)]
            axes.plot(middles, one.medians, marker=marker, linestyle=dash, color="0.2", ms=4, lw=1.0, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        axes.set(xlabel="|E[NS]| (units of exp(f2), middle of a bin)", ylabel="median i(x, y) (1 where |E[NS]| < 1)")
        axes.legend(handlelength=4.0, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
