"""The pictures of a card show what the card stores: every bar, dot and limit is where its number says."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binom

from app.charts.axes import ChartStyle
from app.inference.executor import LoadedModel, load_on_numpy
from app.services.describe_card import card_pictures
from app.store import load
from tests.samples import a_loaded_model

SHIPPED = Path(__file__).parents[2] / "models_store"
NAMES = {"counts", "ranges", "widths", "map-male", "map-female", "pit", "tails"}
GEOMETRY = {"x", "y", "width", "height", "cx", "cy", "r"}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_on_numpy(load(SHIPPED, "SoV", "1.0.0"))


@pytest.fixture(scope="module")
def drawn(model: LoadedModel) -> dict[str, ET.Element]:
    return {name: ET.fromstring(svg) for name, svg in card_pictures(model, ChartStyle(640)).items()}  # noqa: S314 - our own


def described(picture: ET.Element) -> str:
    return picture.findtext(f"{SVG}desc") or ""


def shapes(picture: ET.Element, tag: str, name: str) -> list[dict[str, float]]:
    found = [shape for shape in picture.iter(f"{SVG}{tag}") if name in shape.attrib["class"].split()]
    return [{name: float(value) for name, value in shape.attrib.items() if name in GEOMETRY} for shape in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1200])
def test_every_picture_names_the_model_and_the_people_and_is_the_same_each_time(
    model: LoadedModel, width: int, theme: str
) -> None:
    style = ChartStyle(width, theme)  # type: ignore[arg-type]
    pictures = card_pictures(model, style)
    assert set(pictures) == NAMES
    assert pictures == card_pictures(model, style)
    for svg in pictures.values():
        picture = ET.fromstring(svg)  # noqa: S314 - our own
        text = " ".join(part.text or "" for part in picture.iter(f"{SVG}text"))
        assert "SoV 1.0.0" in text
        assert "(n = 1110)" in text
        assert "Simulated" in text
        assert float(picture.attrib["width"]) == width
        assert "style=" not in svg
        assert " id=" not in svg


def test_a_cohort_that_is_not_simulated_has_no_warning(model: LoadedModel) -> None:
    cohort = replace(model.card.cohort, name="Ghent 2024")
    real = replace(model, stored=replace(model.stored, card=replace(model.card, cohort=cohort)))
    assert all("Simulated" not in svg for svg in card_pictures(real, ChartStyle()).values())


def test_the_bars_of_the_pit_are_the_stored_shares(model: LoadedModel, drawn: dict[str, ET.Element]) -> None:
    bars = shapes(drawn["pit"], "rect", "nc-band-68")
    shares = model.card.calibration.pit_deciles
    unit = bars[0]["height"] / shares[0]
    assert [bar["height"] for bar in bars] == pytest.approx([unit * share for share in shares], rel=1e-3)
    assert [bar["x"] for bar in bars] == sorted(bar["x"] for bar in bars)
    low, high = binom.ppf(0.025, 1110, 0.1) / 11.1, binom.isf(0.025, 1110, 0.1) / 11.1
    assert f"1 of 10 lie outside {low:.1f}% to {high:.1f}%" in described(drawn["pit"])


def test_the_dots_of_the_tails_are_the_stored_shares(model: LoadedModel, drawn: dict[str, ET.Element]) -> None:
    """In the order of the groups: below (hollow), above (filled)."""
    tails = model.card.calibration.tails
    dots = shapes(drawn["tails"], "circle", "nc-point")
    assert len(dots) == 2 * len(tails) == 14
    shares = [share for group in tails for share in (group.below, group.above)]
    scale = (dots[1]["cx"] - dots[0]["cx"]) / (shares[1] - shares[0])
    expected = [dots[0]["cx"] + scale * (share - shares[0]) for share in shares]
    assert [dot["cx"] for dot in dots] == pytest.approx(expected, abs=0.1)
    assert "60 years and more, 147: 2.7% below, 4.8% above." in described(drawn["tails"])
    hollow = shapes(drawn["tails"], "circle", "nc-earlier")
    assert [dot["cx"] for dot in hollow] == [dot["cx"] for dot in dots[::2]]


def test_the_cohort_is_counted_by_sex_and_age(drawn: dict[str, ET.Element]) -> None:
    text = described(drawn["counts"])
    assert "1110 people: 555 male, 555 female." in text
    assert "40 to 59 years: 452 people." in text
    bars = shapes(drawn["counts"], "rect", "nc-band-68")
    assert [bar["width"] / bars[0]["width"] for bar in bars] == pytest.approx(
        [1, 1, 166 / 555, 345 / 555, 452 / 555, 147 / 555], rel=1e-3
    )


def test_body_sizes_are_shown_as_far_as_they_are_stored(drawn: dict[str, ET.Element]) -> None:
    text = described(drawn["ranges"])
    for part in ("Age: 5.07 to 81.68 years, geometric mean 35.4.", "Height, female: 102.8 to 183.3 cm."):
        assert part in text
    assert "cannot be shown" in text


def test_the_widths_of_the_cohort_add_up_to_everybody(model: LoadedModel, drawn: dict[str, ET.Element]) -> None:
    bars = shapes(drawn["widths"], "rect", "nc-band-68")
    quantiles = model.card.width_quantiles
    above = sum(width > 1.0 for width in quantiles) / (len(quantiles) - 1)
    beyond = [bar for k, bar in enumerate(bars) if k >= 20]  # of 0.05 each
    assert sum(bar["height"] for bar in beyond) / sum(bar["height"] for bar in bars) == pytest.approx(above, abs=0.005)
    assert f"{100 * above:.0f}" == described(drawn["widths"]).split("% of the cohort")[0].split()[-1].split(".")[0]


def test_a_small_model_with_other_covariates_can_be_drawn() -> None:
    assert set(card_pictures(a_loaded_model(), ChartStyle(360))) == NAMES
