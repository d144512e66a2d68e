"""Plots of an evaluation, readable in grey: lines differ by dash and shade, never by hue alone.

Pure: numbers in, a matplotlib figure out; `render` turns it into bytes. Matplotlib is loaded on first use,
because a serving process has none.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

STROKES = (("black", "-"), ("0.35", "--"), ("0.55", ":"), ("0.15", "-."))
STYLE: Any = {"svg.hashsalt": "normalcy", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    x: Array
    y: Array


def curves(lines: Sequence[Curve], x_label: str, y_label: str, *, diagonal: bool = False) -> Figure:
    """Curves over the unit square: ROC, precision and recall."""
    figure, axes = _canvas(3.6, 3.6)
    if diagonal:
        axes.plot([0, 1], [0, 1], color="0.8", linewidth=0.8)
    for line, (shade, dash) in zip(lines, STROKES, strict=False):
        axes.plot(line.x, line.y, color=shade, linestyle=dash, linewidth=1.3, label=line.label)
    axes.set(xlabel=x_label, ylabel=y_label, xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    axes.legend(frameon=False, loc="lower right" if diagonal else "lower left")
    return figure


def pit_histogram(pit: Array, bins: int = 20) -> Figure:
    """Where people fall in their own predictive distribution; flat is calibrated, the band is 95% by chance."""
    figure, axes = _canvas(4.6, 2.8)
    expected = len(pit) / bins
    noise = 1.96 * np.sqrt(expected * (1 - 1 / bins))
    axes.axhspan(expected - noise, expected + noise, color="0.9", zorder=0, label="95% by chance")
    axes.hist(pit, bins=bins, range=(0.0, 1.0), color="0.6", edgecolor="white")
    axes.axhline(expected, color="black", linewidth=0.8, label="calibrated")
    axes.set(xlabel="position in the predictive distribution", ylabel="people", xlim=(0, 1))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def share_bars(shares: Mapping[str, Mapping[str, float]]) -> Figure:
    """Horizontal bars of shares by group: how many get each verdict or position."""
    rows = [(f"{group}: {name}", share) for group, names in shares.items() for name, share in names.items()]
    figure, axes = _canvas(4.6, 0.5 + 0.28 * len(rows))
    labels, values = [row[0] for row in rows][::-1], [100 * row[1] for row in rows][::-1]
    axes.barh(labels, values, color="0.55", height=0.6)
    for position, value in enumerate(values):
        axes.text(value + 1, position, f"{value:.1f}%", va="center", fontsize=8)
    axes.set(xlabel="people, %", xlim=(0, 112), xticks=range(0, 101, 20))
    return figure


def score_intervals(expected: Array, low: Array, high: Array, diameter_mm: Array, *, most: int = 60) -> Figure:
    """Expected scores with their 95% intervals against the diameter, person by person."""
    figure, axes = _canvas(5.2, 3.4)
    picked = np.unique(np.linspace(0, len(expected) - 1, most).astype(int))  # evenly over the sorted diameters
    order = np.argsort(diameter_mm, kind="stable")[picked]
    axes.vlines(diameter_mm[order], low[order], high[order], color="0.6", linewidth=1.0, label="95% HDI")
    axes.plot(diameter_mm[order], expected[order], "o", color="black", markersize=2.5, label="expected score")
    axes.axhline(2, color="black", linewidth=0.8, linestyle="--")
    axes.set(xlabel="diameter, mm", ylabel="normalcy score")
    axes.legend(frameon=False, loc="upper left")
    return figure


def render(figure: Figure, kind: str) -> bytes:
    """PNG or SVG bytes, the same for the same figure."""
    import matplotlib as mpl

    stream = io.BytesIO()
    dateless: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 160}
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format=kind, bbox_inches="tight", **dateless)
    return stream.getvalue()


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots()
