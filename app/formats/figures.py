"""Plots of an evaluation. Lines differ by colour and dash, groups by colour and marker, so that nothing rests on hue.

Every title names the model and how many people are shown. Pure: numbers in, a matplotlib figure out; `render` turns it
into bytes. Matplotlib is loaded on first use, because a serving process has none.
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

# Okabe and Ito's palette, which colour-blind people tell apart; also distinct in grey.
BLUE, VERMILION, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "0.25"
STROKES = ((BLUE, "-"), (VERMILION, "--"), (GREEN, ":"), ("black", "-."))
MOST_PEOPLE = 2000  # drawn one by one; more would be a solid area, and an SVG of megabytes
STYLE: Any = {"svg.hashsalt": "normalcy", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}


@dataclass(frozen=True, slots=True)
class Curve:
    label: str
    x: Array
    y: Array


@dataclass(frozen=True, slots=True)
class Person:
    """One group of people in a plot of scores: how it is named and drawn."""

    label: str
    colour: str
    marker: str
    size: float = 4.5


LABELLED_0, LABELLED_1 = Person("labelled 0", BLUE, "o"), Person("labelled 1", VERMILION, "^")
WITHHELD = Person("no score is given (not reliable)", GREY, "x", 7.0)


@dataclass(frozen=True, slots=True)
class Title:
    model: str  # "SoV 1.0.0 (simulated)"
    people: str  # "351 people, 84 labelled 1"

    def of(self, plot: str) -> str:
        return f"{plot}: {self.model}\n{self.people}"


def curves(
    lines: Sequence[Curve], title: str, x_label: str, y_label: str, chance: tuple[float, float], score: str
) -> Figure:
    """Curves over the unit square: ROC, precision and recall. `chance`: a worthless score, at the left and right end;
    `score` names the number in the labels."""
    figure, axes = _canvas(4.2, 5.2, title)
    axes.plot([0, 1], chance, color="0.6", linewidth=0.8, label="by chance")
    for line, (colour, dash) in zip(lines, STROKES, strict=True):
        axes.plot(line.x, line.y, color=colour, linestyle=dash, linewidth=1.5, label=line.label)
    axes.set(xlabel=x_label, ylabel=y_label, xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.14), title=score, alignment="left")
    return figure


def pit_histogram(pit: Array, title: str, bins: int = 20) -> Figure:
    """Where people fall in their own predictive distribution; flat is calibrated, the band is 95% by chance."""
    figure, axes = _canvas(5.2, 3.2, title)
    expected = len(pit) / bins
    noise = 1.96 * np.sqrt(expected * (1 - 1 / bins))
    axes.hist(pit, bins=bins, range=(0.0, 1.0), color="#9ecae1", edgecolor="white")
    low = max(expected - noise, 0.0)
    axes.axhspan(low, expected + noise, facecolor="none", edgecolor=VERMILION, linestyle="--", label="95% by chance")
    axes.axhline(expected, color="black", linewidth=0.9, label="ideal")
    axes.set(xlabel="position in the predictive distribution", ylabel="people", xlim=(0, 1))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def share_bars(shares: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Horizontal bars of shares by group: how many get each verdict or position."""
    rows = [(f"{group}: {name}", share) for group, names in shares.items() for name, share in names.items()]
    figure, axes = _canvas(5.2, 0.9 + 0.28 * len(rows), title)
    labels, values = [row[0] for row in rows][::-1], [100 * row[1] for row in rows][::-1]
    axes.barh(labels, values, color=BLUE, height=0.6)
    for position, value in enumerate(values):
        axes.text(value + 1, position, f"{value:.1f}%", va="center", fontsize=8)
    axes.set(xlabel="people, %", xlim=(0, 112), xticks=range(0, 101, 20))
    return figure


def score_intervals(
    expected: Array, low: Array, high: Array, diameter_mm: Array, groups: Mapping[Person, NDArray[np.bool_]], title: str
) -> Figure:
    """Expected scores with their 95% intervals against the diameter, person by person. The title says how many are
    left out, if there are more than MOST_PEOPLE."""
    chosen = people_to_draw(diameter_mm)
    drawn, people = int(chosen.sum()), len(diameter_mm)
    left_out = (
        f"\n{drawn} of them shown, evenly over the diameters; {people - drawn} left out" if drawn < people else ""
    )
    figure, axes = _canvas(6.4, 4.2, title + left_out)
    crowd = min(1.0, 12.0 / np.sqrt(drawn))  # the more people, the fainter and smaller
    for person, mask in groups.items():
        who = mask & chosen
        if not who.any():
            continue
        colour, x = person.colour, diameter_mm[who]
        axes.vlines(x, low[who], high[who], color=colour, linewidth=1.0, alpha=0.3 + 0.4 * crowd)
        label = f"{person.label}, {counted_people(int(mask.sum()))}"
        axes.plot(
            x, expected[who], person.marker, color=colour, markersize=person.size * (0.4 + 0.6 * crowd), label=label
        )
    for threshold in (-2, 2):
        axes.axhline(threshold, color="black", linewidth=0.8, linestyle="--")
    axes.set(xlabel="diameter, mm", ylabel="expected score, with its 95% HDI")
    axes.legend(frameon=False, loc="upper left")
    return figure


def people_to_draw(diameter_mm: Array, most: int = MOST_PEOPLE) -> NDArray[np.bool_]:
    """Everybody, or so many spread evenly over the sorted diameters."""
    chosen = np.zeros(len(diameter_mm), dtype=np.bool_)
    order = np.argsort(diameter_mm, kind="stable")
    chosen[order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(int))]] = True
    return chosen


def counted_people(number: int) -> str:
    return "1 person" if number == 1 else f"{number} people"


def render(figure: Figure, kind: str) -> bytes:
    """PNG or SVG bytes, the same for the same figure."""
    import matplotlib as mpl

    stream = io.BytesIO()
    dateless: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 160}
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format=kind, bbox_inches="tight", **dateless)
    return stream.getvalue()


def _canvas(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.suptitle(title, x=0.02, ha="left", fontsize=9.5)
        return figure, figure.subplots()
