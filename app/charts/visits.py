"""Several measurements of one patient: the score with its interval over age, marked as exploratory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.charts.axes import EDGE, Box, ChartStyle, ChartTexts, Scale, draw_x_axis, draw_y_axis, framed_canvas, padded
from app.charts.label_strip import StripLabel, draw_strip, strip_height
from app.charts.svg import Canvas, line_path
from app.charts.wording import (
    interval_text,
    model_caption,
    model_warning,
    score_text,
    sentences,
    short,
    signed,
    site_title,
    verdict_text,
    years,
)
from app.schemas.answers import ModelProvenance, Reliability, Score

USUAL = (-2.0, 2.0)
ERROR_BAR_CAP = 4.0
LEFT, RIGHT = 26.0, 8.0  # px, beside the plot
MARKS = {"ok": "", "caution": " †", "not_reliable": " ‡"}  # behind a score


@dataclass(frozen=True, slots=True)
class VisitPoint:
    age_years: float
    diameter_mm: float
    score: Score | None  # None: withheld
    is_main: bool  # the measurement of the request itself
    reliability: Reliability

    @property
    def verdict(self) -> str:
        return verdict_text(self.reliability, is_scored=self.score is not None)


@dataclass(frozen=True, slots=True)
class VisitsData:
    site: str
    points: Sequence[VisitPoint]
    note: str
    model: ModelProvenance


def draw_visits(data: VisitsData, style: ChartStyle) -> str:
    title = f"{site_title(data.site)}: scores over age"
    points = sorted(data.points, key=lambda point: point.age_years)
    scored = [(point, point.score) for point in points if point.score is not None]
    texts = ChartTexts(
        title, data.note, _notes(points), model_caption(data.model), model_warning(data.model), _verdicts(scored)
    )
    labels_above = strip_height([_label(*each) for each in scored], style.width - 2 * EDGE - LEFT - RIGHT)
    plot_height = min(max(0.45 * style.width, 210.0), 380.0)
    canvas, box = framed_canvas(style, texts, plot_height, LEFT, RIGHT, gap=20.0 + labels_above)
    x, y = _scales(box, points)
    canvas.rect("nc-usual", box.left, y(USUAL[1]), box.width, y(USUAL[0]) - y(USUAL[1]))
    draw_y_axis(canvas, box, y, "")
    canvas.text("nc-text", EDGE, box.top - labels_above - 4, "Normalcy score, NS")
    for limit in USUAL:
        canvas.path("nc-threshold", line_path([(box.left, y(limit)), (box.right, y(limit))]))
    labels = [StripLabel(x(point.age_years), y(score.hdi.high), _label(point, score)) for point, score in scored]
    draw_strip(canvas, box, labels, "nc-label")
    if len(scored) > 1:
        canvas.path("nc-visit-line", line_path((x(point.age_years), y(score.expected_ns)) for point, score in scored))
    for point, score in scored:
        _draw_score(canvas, x(point.age_years), y, score, is_main=point.is_main)
    for point in points:
        if point.score is None:
            canvas.circle("nc-point nc-withheld", x(point.age_years), box.bottom - 10, 5)
    draw_x_axis(canvas, box, x, "Age, years")
    return canvas.render("visits", title, _description(points, data))


def _scales(box: Box, points: Sequence[VisitPoint]) -> tuple[Scale, Scale]:
    """Whole scores, and as a rule the same ones, so that the pictures of two sites compare."""
    first, last = padded(points[0].age_years, points[-1].age_years, share=0.07)
    ends = [end for point in points if point.score for end in (point.score.hdi.low, point.score.hdi.high)]
    low, high = math.floor(min(-3.0, *ends) if ends else -3.0), math.ceil(max(3.0, *ends) if ends else 3.0)
    return Scale(first, last, box.left, box.right), Scale(low, high, box.bottom, box.top)


def _draw_score(canvas: Canvas, at: float, y: Scale, score: Score, *, is_main: bool) -> None:
    low, high = y(score.hdi.low), y(score.hdi.high)
    canvas.path("nc-hdi", f"M{at:.1f} {low:.1f}L{at:.1f} {high:.1f}")
    for end in (low, high):
        canvas.path("nc-hdi", f"M{at - ERROR_BAR_CAP:.1f} {end:.1f}L{at + ERROR_BAR_CAP:.1f} {end:.1f}")
    canvas.circle("nc-point" if is_main else "nc-point nc-earlier", at, y(score.expected_ns), 5)


def _label(point: VisitPoint, score: Score) -> str:
    return f"{signed(score.expected_ns)}{MARKS[point.reliability.verdict]}"


def _verdicts(scored: Sequence[tuple[VisitPoint, Score]]) -> list[str]:
    """What the marks mean: each verdict once, with every reason that occurs."""
    found = []
    for name in ("caution", "not_reliable"):
        said = dict.fromkeys(point.verdict for point, _ in scored if point.reliability.verdict == name)
        if said:
            found.append(f"{MARKS[name].strip()} {' '.join(said)}")
    return found


def _notes(points: Sequence[VisitPoint]) -> str:
    notes = ["Bars: HDI of each score. Grey: about 95% of the reference group."]
    if any(point.is_main for point in points):
        notes.append("Filled: this measurement.")
    if any(point.score is None for point in points):
        notes.append("Dashed circles: no score, not reliable.")
    return sentences(notes)


def _description(points: Sequence[VisitPoint], data: VisitsData) -> str:
    return sentences(
        [
            "Normalcy scores over age.",
            *map(_in_words, points),
            data.note,
            model_caption(data.model),
            model_warning(data.model),
        ]
    )


def _in_words(point: VisitPoint) -> str:
    measured = f"At {years(point.age_years)}, {short(point.diameter_mm)} mm:"
    if point.score is None:
        return f"{measured} no score, because it would not be reliable. {point.verdict}"
    return f"{measured} {score_text(point.score)}, {interval_text(point.score.hdi)}. {point.verdict}".rstrip()
