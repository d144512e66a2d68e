"""The reference curve: expected diameter and predictive bands over age at one body size, with the patient's point."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.charts.axes import (
    Box,
    ChartStyle,
    ChartTexts,
    Scale,
    draw_x_axis,
    draw_y_axis,
    framed_canvas,
    padded,
    spread_labels,
    text_width,
)
from app.charts.svg import Canvas, area_path, line_path
from app.charts.theme import TEXT_SIZE
from app.charts.wording import (
    interval_text,
    model_caption,
    model_warning,
    score_text,
    sentences,
    short,
    site_title,
    verdict_text,
    years,
)
from app.formats.summaries import share, tenths
from app.schemas.answers import ModelProvenance, Reliability
from app.schemas.charts import ChartInput, ChartMeasurement, Curves

Points = Sequence[tuple[float, float]]

NO_CURVES = "No reference curve: at no age is this body size covered by the model."
NO_SCORE = "Grey ages: no score here."
GAP_LABEL = "no score here"
UNSURE = "Shaded ages: the model is less sure (caution)."
LABEL_GAP = 15.0
FEWEST_PIXELS = 50.0  # of a shaded run, to be labelled
ERROR_BAR_CAP = 5.0  # half the length of the ends of the interval's bar
LABEL_HEIGHT, LABEL_CLEAR = 32.0, 3.0  # px, of the patient's label, and from it to any line
LABEL_OUT = (0.0, 20.0, 40.0, 60.0, 80.0)  # px, how far it may move away from its place beside the point


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """Where the two lines of the patient's label may lie."""

    left: float
    right: float
    top: float
    anchor: str
    has_leader_line: bool  # so far from the point that a line must lead to it

    @property
    def bottom(self) -> float:
        return self.top + LABEL_HEIGHT

    @property
    def near_end(self) -> float:
        return self.right if self.anchor == "end" else self.left

    def is_inside(self, box: Box) -> bool:
        return (
            box.left <= self.left and self.right <= box.right and box.top - 8 <= self.top and self.bottom <= box.bottom
        )

    def clearance(self, lines: Sequence[Points]) -> float:
        """To the nearest line, in pixels; 0 where one crosses the label."""
        beside = [y for line in lines for x, y in line if self.left - 6 <= x <= self.right + 6]
        above = [y for y in beside if y <= self.top]
        below = [y for y in beside if y >= self.bottom]
        if len(above) + len(below) < len(beside):
            return 0.0
        return min([self.top - y for y in above] + [y - self.bottom for y in below], default=LABEL_CLEAR)


@dataclass(frozen=True, slots=True)
class ReferenceData:
    site: str
    patient: ChartInput
    curves: Curves | None
    measurement: ChartMeasurement | None
    reliability: Reliability
    model: ModelProvenance

    @property
    def verdict(self) -> str:
        return verdict_text(
            self.reliability, is_scored=self.measurement is not None and self.measurement.score is not None
        )


def draw_reference(data: ReferenceData, style: ChartStyle) -> str:
    title = f"{site_title(data.site)}: diameter for age"
    texts = ChartTexts(
        title, _subtitle(data), _notes(data), model_caption(data.model), model_warning(data.model), [data.verdict]
    )
    right = 58.0 if style.is_compact else 74.0
    if data.curves is None:
        canvas, box = framed_canvas(style, texts, 120.0, gap=12.0)
    else:
        canvas, box = framed_canvas(style, texts, style.plot_height, 26.0, right)
    if data.curves is None:
        canvas.rect("nc-usual", box.left, box.top, box.width, box.height, radius=6)
        middle = box.left + box.width / 2
        for k, text in enumerate(("No reference curve:", "this body size is not covered", "by the model at any age")):
            canvas.text("nc-text", middle, box.top + box.height / 2 + 18 * (k - 1), text, "middle")
    else:
        _draw_plot(canvas, box, data, data.curves)
    return canvas.render("reference", title, _description(data))


def _draw_plot(canvas: Canvas, box: Box, data: ReferenceData, curves: Curves) -> None:
    x, y = _scales(box, data, curves)
    ages = [x(age) for age in curves.age_years]
    for first, last in runs(curves):
        _shade_unsure(canvas, box, ages, curves, range(first, last), x(data.patient.age_years))
    draw_y_axis(canvas, box, y, "Diameter, mm")
    is_high = data.patient.diameter_mm is not None and y(data.patient.diameter_mm) < box.top + box.height / 2
    for begin, end in gaps(curves, data.patient.age_years):
        _draw_gap(canvas, box, x(begin), x(end), at_bottom=is_high)
    bands = {curve.percent: [y(mm) for mm in curve.diameter_mm] for curve in curves.quantiles_mm}
    expected = [y(mm) for mm in curves.expected_diameter_mm]
    thresholds = [(curve.threshold, [y(mm) for mm in curve.median]) for curve in curves.diameter_at_threshold_mm]
    for first, last in runs(curves):
        run = slice(first, last)
        for name, low, high in (("95", 2.5, 97.5), ("68", 16.0, 84.0)):
            upper, lower = list(zip(ages[run], bands[high][run])), list(zip(ages[run], bands[low][run]))  # noqa: B905
            canvas.path(f"nc-band nc-band-{name}", area_path(upper, lower))
        canvas.path("nc-median", line_path(zip(ages[run], expected[run], strict=True)))
        for _, heights in thresholds:
            canvas.path("nc-threshold", line_path(zip(ages[run], heights[run], strict=True)))
    draw_x_axis(canvas, box, x, "Age, years")
    _label_curves(canvas, box, ages[-1], bands, expected[-1], [(t, heights[-1]) for t, heights in thresholds])
    drawn = [expected, *(heights for _, heights in thresholds)]
    lines = [list(zip(ages[first:last], heights[first:last])) for heights in drawn for first, last in runs(curves)]  # noqa: B905
    _draw_patient(canvas, box, x, y, data, lines)


def _scales(box: Box, data: ReferenceData, curves: Curves) -> tuple[Scale, Scale]:
    """Clamped to what is drawn: the curves, and the patient's point and bar."""
    ages = [*curves.age_years, data.patient.age_years]
    heights = [mm for curve in curves.quantiles_mm for mm in curve.diameter_mm]
    heights += [mm for curve in curves.diameter_at_threshold_mm for mm in curve.median]
    if data.patient.diameter_mm is not None:
        heights.append(data.patient.diameter_mm)
    if data.measurement is not None and data.measurement.hdi_mm is not None:
        heights += [data.measurement.hdi_mm.low, data.measurement.hdi_mm.high]
    low, high = padded(min(heights), max(heights))
    first, last = min(ages), max(ages)
    if first == last:
        first, last = padded(first, last)
    return Scale(first, last, box.left, box.right), Scale(max(low, 0.0), high, box.bottom, box.top)


def runs(curves: Curves) -> Iterator[tuple[int, int]]:
    """Index ranges of neighbouring ages: where the model is not reliable in between, the curves are interrupted."""
    ages = curves.age_years
    usual = min((b - a for a, b in zip(ages, ages[2:], strict=False)), default=0.0)  # the patient's age halves a step
    first = 0
    for k in range(1, len(ages)):
        if ages[k] - ages[k - 1] > 1.5 * max(usual, 1e-9):
            yield first, k
            first = k
    yield first, len(ages)


def gaps(curves: Curves, age_years: float) -> list[tuple[float, float]]:
    """Ages without a score, between the curves and from them to the patient's age."""
    pieces = list(runs(curves))
    found = [(curves.age_years[last - 1], curves.age_years[first]) for (_, last), (first, _) in pairwise(pieces)]
    first, last = curves.age_years[0], curves.age_years[-1]
    return found + [(age_years, first)] * (age_years < first) + [(last, age_years)] * (age_years > last)


def _draw_gap(canvas: Canvas, box: Box, left: float, right: float, *, at_bottom: bool) -> None:
    """Shaded, and labelled in one line or word by word where there is room; the notes say it in any case."""
    canvas.rect("nc-not-reliable", left, box.top, right - left, box.height)
    for lines in ([GAP_LABEL], GAP_LABEL.split()):
        if right - left >= max(map(text_width, lines)) + 4:
            first = box.bottom - 8 - LABEL_GAP * (len(lines) - 1) if at_bottom else box.top + 14
            for k, text in enumerate(lines):
                canvas.text("nc-text", (left + right) / 2, first + LABEL_GAP * k, text, "middle")
            return


def _shade_unsure(canvas: Canvas, box: Box, ages: Sequence[float], curves: Curves, run: range, patient: float) -> None:
    """The label lies at the end of the shade that is farther from the patient's."""
    unsure = [k for k in run if curves.verdict[k] == "caution"]
    while unsure:
        end = next((j for j in range(1, len(unsure)) if unsure[j] != unsure[j - 1] + 1), len(unsure))
        left, right = ages[unsure[0]], ages[unsure[end - 1]]
        canvas.rect("nc-unsure", left, box.top, max(right - left, 1.0), box.height)
        if right - left >= FEWEST_PIXELS:
            anchor, at = ("start", left + 3) if patient > (left + right) / 2 else ("end", right - 3)
            canvas.text("nc-unsure-text", at, box.top + 14, "caution", anchor)
        unsure = unsure[end:]


def _label_curves(
    canvas: Canvas,
    box: Box,
    x: float,
    bands: dict[float, list[float]],
    expected: float,
    thresholds: Sequence[tuple[float, float]],
) -> None:
    """Beside the ends of the curves, instead of a legend."""
    wanted = [(heights[-1], "nc-band-text", f"{percent:g}%") for percent, heights in bands.items()]
    wanted.append((expected, "nc-band-text", "expected"))
    wanted += [(height, "nc-threshold-text", f"NS = {short(t)}") for t, height in thresholds]
    wanted.sort(key=lambda each: each[0])
    placed = spread_labels([height for height, _, _ in wanted], LABEL_GAP, box.top - 8, box.bottom)
    # Across a gap, they must not look like curves that go on.
    kind = "nc-leader nc-gap" if x < box.right - 1 else "nc-grid"
    for (height, name, text), position in zip(wanted, placed, strict=True):
        canvas.path(kind, f"M{x + 1:.1f} {height:.1f}H{box.right:.1f}L{box.right + 6:.1f} {position:.1f}")
        canvas.text(name, box.right + 8, position + 4, text)


def _draw_patient(canvas: Canvas, box: Box, x: Scale, y: Scale, data: ReferenceData, lines: Sequence[Points]) -> None:
    at = x(data.patient.age_years)
    if data.patient.diameter_mm is None:
        canvas.line("nc-guide", at, box.top, at, box.bottom)
        return
    height = y(data.patient.diameter_mm)
    canvas.line("nc-guide", at, height, at, box.bottom)
    measurement = data.measurement
    if measurement is not None and measurement.hdi_mm is not None:
        low, high = y(measurement.hdi_mm.low), y(measurement.hdi_mm.high)
        canvas.path("nc-hdi", f"M{at:.1f} {low:.1f}L{at:.1f} {high:.1f}")
        for end in (low, high):
            canvas.path("nc-hdi", f"M{at - ERROR_BAR_CAP:.1f} {end:.1f}L{at + ERROR_BAR_CAP:.1f} {end:.1f}")
    is_scored = measurement is not None and measurement.score is not None
    canvas.circle("nc-point" if is_scored else "nc-point nc-withheld", at, height, 5.5)
    _label_patient(canvas, box, at, height, data, lines)


def _places(at: float, height: float, width: float, out: float) -> Iterator[LabelPlace]:
    """To the left and to the right, above, below and beside the point, or so far out above and below; a rising curve
    leaves more room above on its left."""
    has_leader_line = out > 0
    for top in (height - 35 - out, height + 7 + out, *([] if has_leader_line else [height - LABEL_HEIGHT / 2])):
        yield LabelPlace(at - 11 - width, at - 11, top, "end", has_leader_line)
        yield LabelPlace(at + 11, at + 11 + width, top, "start", has_leader_line)


def _label_patient(
    canvas: Canvas, box: Box, at: float, height: float, data: ReferenceData, lines: Sequence[Points]
) -> None:
    """Beside the point where no line is near, else farther out with a leader."""
    score = data.measurement.score if data.measurement is not None else None
    texts = [f"{short(data.patient.diameter_mm or 0.0)} mm", score_text(score) if score else "no score"]
    width = max(text_width(text, TEXT_SIZE) for text in texts)
    places = [place for out in LABEL_OUT for place in _places(at, height, width, out)]
    inside = [place for place in places if place.is_inside(box)] or places[:1]
    free = next((place for place in inside if place.clearance(lines) >= LABEL_CLEAR), None)
    place = free or max(inside, key=lambda each: each.clearance(lines))
    if place.has_leader_line:
        end = place.bottom if place.bottom < height else place.top
        canvas.path("nc-leader", line_path([(at, height), (place.near_end, end)]))
    for k, (name, text) in enumerate(zip(("nc-label", "nc-label-muted"), texts, strict=True)):
        canvas.text(name, place.near_end, place.top + 13 + 16 * k, text, place.anchor)


def _subtitle(data: ReferenceData) -> str:
    patient = data.patient
    return f"Reference group: {patient.reference_sex}, {short(patient.height_cm)} cm, {short(patient.weight_kg)} kg."


def _notes(data: ReferenceData) -> str:
    notes = ["Bands: 68% and 95% of people."] if data.curves is not None else []
    if data.measurement is not None and data.measurement.score is not None:
        notes.append(f"Bar: {share(data.measurement.score.hdi.probability)} HDI of the score, in mm.")
    elif data.measurement is not None:
        notes.append("No score is given: not reliable for this patient.")
    if data.curves is not None and "caution" in data.curves.verdict:
        notes.append(UNSURE)
    if data.curves is not None and gaps(data.curves, data.patient.age_years):
        notes.append(NO_SCORE)
    return sentences(notes)


def _description(data: ReferenceData) -> str:
    patient = data.patient
    return sentences(
        [
            "Expected diameter over age with the ranges of 68% and 95% of people.",
            f"Reference group: {patient.reference_sex}, {short(patient.height_cm)} cm, {short(patient.weight_kg)} kg.",
            _curve_in_words(data),
            _measurement_in_words(data),
            data.verdict or "Reliability: ok.",
            model_caption(data.model),
            model_warning(data.model),
        ]
    )


def _curve_in_words(data: ReferenceData) -> str:
    curves = data.curves
    if curves is None:
        return NO_CURVES
    ages = f"The curves run from {years(curves.age_years[0])} to {years(curves.age_years[-1])}."
    if data.patient.age_years not in curves.age_years:
        return f"{ages} They do not cover the patient's age, {years(data.patient.age_years)}."
    k = curves.age_years.index(data.patient.age_years)
    at = {curve.percent: tenths(curve.diameter_mm[k]) for curve in curves.quantiles_mm}
    return (
        f"{ages} At {years(data.patient.age_years)} the expected diameter is "
        f"{tenths(curves.expected_diameter_mm[k])} mm, with 95% of people from {at[2.5]} to {at[97.5]} mm."
    )


def _measurement_in_words(data: ReferenceData) -> str:
    diameter, measurement = data.patient.diameter_mm, data.measurement
    if diameter is None or measurement is None:
        return "No measurement is drawn."
    measured = f"The measured diameter is {short(diameter)} mm"
    if measurement.score is None:
        return f"{measured}; no score is given, because it would not be reliable for this patient."
    return f"{measured}, {score_text(measurement.score)}, {interval_text(measurement.score.hdi)}."
