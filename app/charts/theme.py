"""Colours, strokes and type sizes by class name. A page may recolour the classes with its own style sheet.

Hues are from the blue and orange ends of Okabe and Ito's palette, which colour-blind people tell apart; what matters
also differs in lightness, dash or label, so that nothing rests on hue alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["light", "dark"]
Theme = Mapping[str, Mapping[str, str]]

FONT = "system-ui, sans-serif"
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 16, 13, 12
DASH, DOTS = "7 4", "1.5 4"


@dataclass(frozen=True, slots=True)
class Colours:
    background: str
    text: str
    muted: str
    axis: str
    grid: str
    wide_band: str
    narrow_band: str
    line: str
    threshold: str
    beyond: str  # the part of a density beyond a threshold, and of its interval
    beyond_hdi: str
    unsure: str
    unsure_text: str
    usual: str
    ramp: tuple[str, ...]  # from sure to unsure, of the reliability map
    not_reliable: str


COLOURS: Mapping[ThemeName, Colours] = {
    "light": Colours(
        background="#ffffff",
        text="#17212b",
        muted="#566472",
        axis="#7d8a97",
        grid="#e9edf1",
        wide_band="#e1edf7",
        narrow_band="#bfd9ee",
        line="#0b5a9c",
        threshold="#b3470a",
        beyond="#fae5d6",
        beyond_hdi="#f3c19c",
        unsure="#f6ecd6",
        unsure_text="#76550f",
        usual="#f1f4f7",
        ramp=("#eef5fb", "#d3e5f3", "#b1d0e8", "#88b6da", "#5d98c8", "#3878b0", "#1f5890", "#123a68"),
        not_reliable="#e4e4e4",
    ),
    "dark": Colours(
        background="#14191f",
        text="#eef2f6",
        muted="#a9b5c1",
        axis="#6f7d8a",
        grid="#262e36",
        wide_band="#1d3346",
        narrow_band="#29506f",
        line="#7cc0f2",
        threshold="#f2a365",
        beyond="#40291a",
        beyond_hdi="#70461f",
        unsure="#3a3220",
        unsure_text="#e2c27a",
        usual="#1c232b",
        ramp=("#16304a", "#1d4468", "#265a88", "#3272a6", "#4b8dbf", "#73abd4", "#a0c8e4", "#d0e4f2"),
        not_reliable="#3a3d41",
    ),
}


def theme(name: ThemeName) -> Theme:
    return THEMES[name]


def _theme(c: Colours) -> Theme:
    halo = {"stroke": c.background, "stroke-width": "3.5", "stroke-linejoin": "round", "paint-order": "stroke"}
    small, plain = {"font-size": str(SMALL_SIZE)}, {"font-size": str(TEXT_SIZE)}
    strong = plain | {"font-weight": "500"}
    line = {"fill": "none", "stroke-linejoin": "round", "stroke-linecap": "round"}
    return {
        "nc-background": {"fill": c.background},
        "nc-title": {"fill": c.text, "font-size": str(TITLE_SIZE), "font-weight": "500"},
        "nc-text": small | {"fill": c.text},
        "nc-muted": small | {"fill": c.muted},
        "nc-note": small | {"fill": c.threshold, "font-weight": "500"},
        "nc-label": strong | {"fill": c.text} | halo,
        "nc-label-muted": small | {"fill": c.muted} | halo,
        "nc-band-text": small | {"fill": c.line},
        "nc-threshold-text": small | {"fill": c.threshold} | halo,
        "nc-unsure-text": small | {"fill": c.unsure_text},
        "nc-axis": {"stroke": c.axis, "stroke-width": "1"},
        "nc-grid": {"fill": "none", "stroke": c.grid, "stroke-width": "1"},
        "nc-band nc-band-95": {"fill": c.wide_band},
        "nc-band nc-band-68": {"fill": c.narrow_band},
        "nc-median": line | {"stroke": c.line, "stroke-width": "2"},
        "nc-threshold": line | {"stroke": c.threshold, "stroke-width": "1.5", "stroke-dasharray": DASH},
        "nc-unsure": {"fill": c.unsure},
        "nc-usual": {"fill": c.usual},
        "nc-hdi": line | {"stroke": c.text, "stroke-width": "2"},
        "nc-point": {"fill": c.text, "stroke": c.background, "stroke-width": "1.5"},
        "nc-point nc-earlier": {"fill": c.background, "stroke": c.text, "stroke-width": "2"},
        "nc-point nc-withheld": {"fill": "none", "stroke": c.muted, "stroke-width": "1.5", "stroke-dasharray": "2 2"},
        "nc-leader": line | {"stroke": c.axis, "stroke-width": "0.75"},
        "nc-leader nc-gap": line | {"stroke": c.axis, "stroke-width": "0.75", "stroke-dasharray": "1 4"},
        "nc-guide": {"stroke": c.muted, "stroke-width": "1", "stroke-dasharray": DOTS, "stroke-linecap": "round"},
        "nc-density": line | {"stroke": c.line, "stroke-width": "2"},
        "nc-density-fill": {"fill": c.wide_band},
        "nc-hdi-fill": {"fill": c.narrow_band},
        "nc-beyond-fill": {"fill": c.beyond},
        "nc-beyond-hdi-fill": {"fill": c.beyond_hdi},
        "nc-error": line | {"stroke": c.muted, "stroke-width": "1.5", "stroke-dasharray": "4 3"},
        "nc-visit-line": line | {"stroke": c.axis, "stroke-width": "1"},
        "nc-not-reliable": {"fill": c.not_reliable},
        "nc-contour": line | {"stroke": c.threshold, "stroke-width": "1.5"},
        **{f"nc-level nc-level-{k}": {"fill": colour} for k, colour in enumerate(c.ramp)},
    }


THEMES: Mapping[ThemeName, Theme] = {name: _theme(colours) for name, colours in COLOURS.items()}
