"""What is drawn follows the data, stays inside the picture, and cannot be broken by a name."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.charts.axes import ChartStyle, Scale, spread_labels, text_width, wrapped
from app.charts.density import DensityData, draw_density
from app.charts.png import FONTS, rasterise
from app.charts.reference import ReferenceData, draw_reference, runs
from app.charts.visits import VisitPoint, VisitsData, draw_visits
from app.domain.patient import Patient, Sex
from app.domain.query import Convention, ScoreQuery
from app.domain.score import Verdict
from app.formats.response import patient_input
from app.inference.reference_curves import assess_context, reference_curves, score_density
from app.inference.scoring import score
from app.schemas.answers import Exceedance, Reason, Reliability, Score
from app.schemas.charts import ChartInput
from tests.samples import a_loaded_model

MODEL = a_loaded_model()
MAN = Patient(55.0, Sex.MALE, 176.0, 84.0)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def reference(**changed: object) -> ReferenceData:
    data = ReferenceData(
        site="SoV",
        patient=ChartInput(**patient_input(MAN), diameter_mm=None),
        curves=reference_curves(MODEL, MAN, Convention(), (2.0,)),
        measurement=None,
        reliability=assess_context(MODEL, MAN, Convention())[0],
        model=MODEL.provenance,
    )
    return replace(data, **changed)  # type: ignore[arg-type]


def scored(diameter_mm: float) -> tuple[ScoreQuery, Score, DensityData]:
    query = ScoreQuery(MAN, diameter_mm, include_unreliable=True)
    [answer] = score(MODEL, [query])
    assert answer.score is not None
    assert answer.reference is not None
    density = score_density(query, answer.reference, answer.score.hdi, None)
    return query, answer.score, DensityData("SoV", answer.score, density, None, answer.reliability, MODEL.provenance)


def elements(svg: str, name: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def is_inside(svg: str) -> bool:
    """Every coordinate of every shape lies in the picture."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    for element in root.iter():
        if element.get("d"):
            points = re.findall(r"([ML])(-?[\d.]+) (-?[\d.]+)", element.get("d", ""))
            if not all(0 <= float(x) <= width and 0 <= float(y) <= height for _, x, y in points):
                return False
        for name, limit in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height), ("y2", height)):
            if not 0 <= float(element.get(name, "0")) <= limit:
                return False
    return True


@pytest.mark.parametrize("width", [320, 640, 1200])
@pytest.mark.parametrize("diameter_mm", [10.0, 34.0, 120.0])
def test_everything_is_inside_the_picture(width: int, diameter_mm: float) -> None:
    style = ChartStyle(width)
    _, found, density = scored(diameter_mm)
    points = [
        VisitPoint(50.0 + k % 2, diameter_mm, None if k == 3 else found, k == 9, density.reliability) for k in range(10)
    ]
    for svg in (
        draw_reference(reference(), style),
        draw_density(density, style),
        draw_visits(VisitsData("SoV", points, "A note.", MODEL.provenance), style),
    ):
        assert is_inside(svg)
        assert f'width="{width}"' in svg


def test_curves_are_interrupted_where_the_model_is_not_reliable_in_between() -> None:
    curves = reference().curves
    assert curves is not None
    assert list(runs(curves)) == [(0, len(curves.age_years))]
    shown = [k for k in range(len(curves.age_years)) if not 40 <= k < 60]
    cut = replace(curves, age_years=tuple(curves.age_years[k] for k in shown))
    assert list(runs(cut)) == [(0, 40), (40, len(shown))]


def test_exactly_the_ages_that_need_caution_are_shaded() -> None:
    curves = reference().curves
    assert curves is not None
    last = len(curves.age_years) - 5
    verdict: tuple[Verdict, ...] = tuple(
        "caution" if 10 <= k < 30 or k >= last else "ok" for k in range(len(curves.age_years))
    )
    shaded = elements(draw_reference(reference(curves=replace(curves, verdict=verdict)), ChartStyle()), "nc-unsure")
    assert len(shaded) == 2
    ok: Verdict = "ok"
    sure = replace(curves, verdict=(ok,) * len(verdict))
    assert elements(draw_reference(reference(curves=sure), ChartStyle()), "nc-unsure") == []


def test_the_point_lies_where_its_age_and_diameter_are() -> None:
    """On the expected curve, if the diameter is the expected one."""
    curves = reference().curves
    assert curves is not None
    k = curves.age_years.index(MAN.age_years)
    patient = replace(reference().patient, diameter_mm=curves.expected_diameter_mm[k])
    svg = draw_reference(reference(patient=patient), ChartStyle())
    [point], [line] = elements(svg, "nc-point"), elements(svg, "nc-median")
    along = [float(number) for number in NUMBER.findall(line.get("d", ""))]
    assert float(point.get("cx", "")) == pytest.approx(along[2 * k], abs=0.1)
    assert float(point.get("cy", "")) == pytest.approx(along[2 * k + 1], abs=0.1)


def test_a_name_cannot_break_out_of_the_text() -> None:
    hostile = replace(MODEL.provenance, cohort='<script>alert("x")</script> & "more"')
    svg = draw_reference(reference(model=hostile), ChartStyle())
    ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert "<script" not in svg


def test_ticks_are_round_and_inside_the_data() -> None:
    assert Scale(5.07, 81.68, 0, 500).ticks(56) == [10, 20, 30, 40, 50, 60, 70, 80]
    assert Scale(-0.31, 0.29, 0, 300).ticks(60) == [-0.2, 0.0, 0.2]
    assert Scale(21.0, 44.0, 320, 0).ticks(34) == [25, 30, 35, 40]


def test_labels_keep_their_order_and_distance() -> None:
    placed = spread_labels([10, 12, 13, 95, 99], 15, 0, 100)
    assert placed == sorted(placed)
    assert all(b - a >= 15 for a, b in pairwise(placed))
    assert placed[-1] <= 100


def test_lines_are_wrapped_between_words() -> None:
    lines = list(wrapped("one two three four", 60))
    assert " ".join(lines) == "one two three four"
    assert len(lines) > 1


def test_png_text_comes_from_the_fonts_of_the_project() -> None:
    """Without them no letter is drawn; with them the picture has more than its background."""
    text = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="20" font-family="system-ui, sans-serif">{}</svg>'
    empty, words = rasterise(text.format(""), 1), rasterise(text.format('<text x="2" y="15">Normalcy</text>'), 1)
    assert len(words) > len(empty) + 200
    assert all(Path(font).exists() for font in FONTS)
    assert (Path(FONTS[0]).parent / "LICENSE").exists()


CAUTION = Reliability("caution", 0.6, 97.0, (Reason("convention_differs", "A reason of the test."),))
NOT_RELIABLE = Reliability("not_reliable", 2.6, 100.0, (Reason("outside_training_range", "Another reason."),))


def visible(svg: str) -> str:
    """All text that is drawn, without title and description."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return " ".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))


def described(svg: str) -> str:
    return ElementTree.fromstring(svg)[1].text or ""  # noqa: S314 - our own


def boxes(svg: str, name: str) -> list[tuple[float, float, float]]:
    """Left end, right end and baseline of texts."""
    found = []
    for element in elements(svg, name):
        x, width = float(element.get("x", "")), text_width(element.text or "", float(element.get("font-size", "")))
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")] * width
        found.append((left, left + width, float(element.get("y", ""))))
    return found


def overlap(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and abs(a[2] - b[2]) < 12


@pytest.mark.parametrize(
    ("reliability", "said"),
    [(CAUTION, "Caution: A reason of the test."), (NOT_RELIABLE, "Not reliable: shown on request.")],
)
def test_every_picture_says_a_verdict_that_is_not_ok(reliability: Reliability, said: str) -> None:
    _, found, density = scored(41.0)
    ok = Reliability("ok", 0.4, 50.0, ())
    visits = [VisitPoint(50.0 + k, 41.0, found, k == 2, reliability if k == 1 else ok) for k in range(3)]
    drawn = draw_visits(VisitsData("SoV", visits, "A note.", MODEL.provenance), ChartStyle())
    for svg in (draw_density(replace(density, reliability=reliability), ChartStyle()), drawn):
        assert said in visible(svg)
        assert said in described(svg)
    marked = [label.text or "" for label in elements(drawn, "nc-label")]
    assert [label[-1] in "†‡" for label in marked] == [False, True, False]
    for svg in (
        draw_density(replace(density, reliability=ok), ChartStyle()),
        draw_reference(reference(reliability=ok), ChartStyle()),
    ):
        assert said not in svg
        assert said[:8] not in visible(svg)
    assert f"{said[:8]}" in visible(draw_reference(reference(reliability=reliability), ChartStyle()))


@pytest.mark.parametrize("width", [320, 390, 640])
@pytest.mark.parametrize("thresholds", [(2.0,), (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5), (1.9, 2.0, 2.1, 9.0)])
def test_no_label_of_a_threshold_lies_on_another_text(width: int, thresholds: tuple[float, ...]) -> None:
    _, found, density = scored(41.0)
    exceedance = tuple(Exceedance(threshold, 0.3, 0.7) for threshold in thresholds)
    svg = draw_density(replace(density, score=replace(found, exceedance=exceedance)), ChartStyle(width))
    labels = boxes(svg, "nc-threshold-text")
    others = boxes(svg, "nc-muted") + boxes(svg, "nc-text") + boxes(svg, "nc-note")
    assert not any(overlap(a, b) for k, a in enumerate(labels) for b in labels[:k] + others)
    assert all(left >= 0 and right <= width for left, right, _ in labels)
    [top] = {float(line.get("y", "")) for line in elements(svg, "nc-usual")}
    assert all(baseline < top for _, _, baseline in labels)
    for threshold in thresholds:
        beyond = f"70% below {threshold:g}" if threshold < 0 else f"30% above {threshold:g}"
        assert beyond.replace("-", "−") in visible(svg)


@pytest.mark.parametrize("width", [320, 640])
def test_every_visit_has_its_value_beside_no_line(width: int) -> None:
    _, found, density = scored(41.0)
    visits = [VisitPoint(50.0 + 0.3 * k, 41.0, found, k == 9, density.reliability) for k in range(10)]
    svg = draw_visits(VisitsData("SoV", visits, "A note.", MODEL.provenance), ChartStyle(width))
    labels = boxes(svg, "nc-label")
    assert len(labels) == 10
    others = boxes(svg, "nc-muted") + boxes(svg, "nc-text")
    assert not any(overlap(a, b) for k, a in enumerate(labels) for b in labels[:k] + others)
    highest = min(float(line.get("d", "").split()[1].split("L")[0]) for line in elements(svg, "nc-threshold"))
    assert all(baseline < highest for _, _, baseline in labels)


def points_of(svg: str, name: str) -> list[tuple[float, float]]:
    numbers = [float(number) for line in elements(svg, name) for number in NUMBER.findall(line.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize("width", [320, 382, 640])
@pytest.mark.parametrize("age_years", [20.0, 55.0, 78.0])
def test_the_label_of_the_patient_lies_on_no_line(width: int, age_years: float) -> None:
    patient = replace(MAN, age_years=age_years)
    curves = reference_curves(MODEL, patient, Convention(), (2.0, -2.0))
    for diameter_mm in (28.0, 31.0, 34.0, 35.5, 37.0, 38.0, 39.0, 40.0, 41.0, 42.0, 46.0, 60.0):
        drawn = ChartInput(**patient_input(patient), diameter_mm=diameter_mm)
        svg = draw_reference(reference(patient=drawn, curves=curves), ChartStyle(width))
        lines = points_of(svg, "nc-threshold") + points_of(svg, "nc-median")
        for left, right, baseline in boxes(svg, "nc-label") + boxes(svg, "nc-label-muted"):
            assert 0 <= left < right <= width
            assert [y for x, y in lines if left <= x <= right and baseline - 10 <= y <= baseline + 3] == []


@pytest.mark.parametrize("diameter_mm", [20.0, 30.0, 35.0, 38.0, 41.0, 44.0, 60.0])
def test_the_density_is_large_enough_to_see_its_shape(diameter_mm: float) -> None:
    _, found, density = scored(diameter_mm)
    exceedance = tuple(Exceedance(threshold, 0.3, 0.7) for threshold in (2.0, -2.0))
    svg = draw_density(replace(density, score=replace(found, exceedance=exceedance)), ChartStyle())
    [axis] = [line for line in elements(svg, "nc-axis") if line.get("y1") == line.get("y2")]
    length = float(axis.get("x2", "")) - float(axis.get("x1", ""))
    across = [x for x, _ in points_of(svg, "nc-density-fill")]
    assert max(across) - min(across) > length / 6
    lines = points_of(svg, "nc-threshold")
    is_near = min(abs(found.hdi.low - 2), abs(found.hdi.high - 2), abs(found.hdi.low + 2), abs(found.hdi.high + 2)) < 2
    assert bool(lines) >= is_near


def test_the_share_beyond_the_limit_is_tinted() -> None:
    _, found, density = scored(44.0)
    middle = (found.hdi.low + found.hdi.high) / 2
    assert middle > 0

    def tinted(threshold: float) -> tuple[list[float], str]:
        exceedance = (Exceedance(threshold, 0.3, 0.7),)
        svg = draw_density(replace(density, score=replace(found, exceedance=exceedance)), ChartStyle())
        return [x for x, _ in points_of(svg, "nc-beyond-fill")], svg

    across, svg = tinted(middle)
    assert min(across) == points_of(svg, "nc-threshold")[0][0]
    assert max(across) == max(x for x, _ in points_of(svg, "nc-density-fill"))
    assert tinted(20.0)[0] == []


@pytest.mark.parametrize("thresholds", [(2.0,), (2.0, -2.0), (-2.0,)])
@pytest.mark.parametrize("diameter_mm", [10.0, 15.0, 58.0, 120.0])
def test_all_of_a_score_far_beyond_the_limit_is_tinted_wherever_the_axis_ends(
    diameter_mm: float, thresholds: tuple[float, ...]
) -> None:
    _, found, density = scored(diameter_mm)
    is_wide = diameter_mm > 50
    assert found.hdi.low > 2 if is_wide else found.hdi.high < -2
    exceedance = tuple(Exceedance(each, float(is_wide), float(not is_wide)) for each in thresholds)
    svg = draw_density(replace(density, score=replace(found, exceedance=exceedance)), ChartStyle())
    assert points_of(svg, "nc-beyond-fill") == points_of(svg, "nc-density-fill")
    assert points_of(svg, "nc-beyond-hdi-fill") == points_of(svg, "nc-hdi-fill")
    limit, beyond = (2.0, "above 2") if is_wide else (-2.0, "below −2")
    drawn = re.sub(r"Beyond the axis: [^.]*\.", "", visible(svg))
    assert (f">99% {beyond}" if limit in thresholds else f"Orange: {beyond}.") in drawn


def test_pictures_beside_each_other_have_plots_of_one_height() -> None:
    _, _, density = scored(41.0)
    ok = Reliability("ok", 0.4, 50.0, ())
    density, beside = replace(density, reliability=ok), reference(reliability=ok)
    for width in (382, 640, 1200):  # none is narrower where two stand beside each other
        style, ends = ChartStyle(width), []
        for svg in (draw_density(density, style), draw_reference(beside, style)):
            [axis] = [line for line in elements(svg, "nc-axis") if line.get("y1") == line.get("y2")]
            ends.append(float(axis.get("y1", "")))
        assert abs(ends[0] - ends[1]) <= 10


def test_ages_without_a_score_are_shaded_up_to_the_patient() -> None:
    curves = reference().curves
    assert curves is not None
    assert elements(draw_reference(reference(), ChartStyle()), "nc-not-reliable") == []
    for age in (0.5, 110.0):
        old = replace(reference().patient, age_years=age)
        svg = draw_reference(reference(patient=old), ChartStyle())
        [shaded] = elements(svg, "nc-not-reliable")
        assert float(shaded.get("width", "")) > 20
        assert "Grey ages: no score here." in visible(svg)
