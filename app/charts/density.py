"""The density of the score: how sure it is, where its interval lies, and how much of it is beyond each threshold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.charts.axes import EDGE, Box, ChartStyle, ChartTexts, Scale, draw_x_axis, framed_canvas, padded
from app.charts.label_strip import StripLabel, draw_strip, strip_height
from app.charts.svg import Canvas, area_path, line_path
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
)
from app.formats.summaries import percent, percent_in_words, share
from app.schemas.answers import Exceedance, Hdi, ModelProvenance, Reliability, Score
from app.schemas.charts import ScoreDensity

USUAL = (-2.0, 2.0)
WITHHELD = "No score is given, because it would not be reliable for this patient."
THRESHOLD = "nc-threshold-text"
NARROW = -0.5  # expected scores below it are shown beside -2, all others beside 2
LEAST_GAP = 30.0  # px above the plot, as in the reference picture
REACH, BESIDE = 4.0, 1.0  # how far from the density the axis goes for that limit, and for any requested threshold


@dataclass(frozen=True, slots=True)
class DensityData:
    site: str
    score: Score
    density: ScoreDensity
    with_error: Hdi | None  # of the error-free diameter
    reliability: Reliability
    model: ModelProvenance

    @property
    def verdict(self) -> str:
        return verdict_text(self.reliability, is_scored=True)


def draw_density(data: DensityData, style: ChartStyle) -> str:
    title = f"{site_title(data.site)}: normalcy score"
    subtitle = f"{score_text(data.score)}, {interval_text(data.score.hdi)}."
    ns, density = data.density.ns, data.density.density
    first, last = _frame(data)
    within = [each for each in data.score.exceedance if first <= each.threshold <= last]
    has_usual = first < USUAL[1] and last > USUAL[0]
    texts = ChartTexts(
        title,
        subtitle,
        _notes(data, (first, last), has_usual),
        model_caption(data.model),
        model_warning(data.model),
        [data.verdict],
    )
    labels_above = strip_height([_beyond(each) for each in within], style.width - 2 * EDGE)
    canvas, box = framed_canvas(style, texts, style.plot_height, gap=max(8.0 + labels_above, LEAST_GAP))
    x = Scale(first, last, box.left, box.right)
    y = Scale(0.0, 1.12 * max(density), box.bottom, box.top)
    if has_usual:
        left, right = x(max(USUAL[0], first)), x(min(USUAL[1], last))
        canvas.rect("nc-usual", left, box.top, right - left, box.height)
    points = [(x(at), y(value)) for at, value in zip(ns, density, strict=True)]
    hdi = data.score.hdi
    canvas.path("nc-density-fill", _under(points, box))
    canvas.path("nc-hdi-fill", _under(_between(points, x(hdi.low), x(hdi.high)), box))
    for low, high in _beyond_limits(data.score.exceedance, ns):
        canvas.path("nc-beyond-fill", _under(_between(points, x(low), x(high)), box))
        low, high = max(low, hdi.low), min(high, hdi.high)
        if low < high:
            canvas.path("nc-beyond-hdi-fill", _under(_between(points, x(low), x(high)), box))
    if data.density.density_with_measurement_error is not None:
        blurred = zip(ns, data.density.density_with_measurement_error, strict=True)
        canvas.path("nc-error", line_path((x(at), y(value)) for at, value in blurred))
    canvas.path("nc-density", line_path(points))
    _draw_thresholds(canvas, box, x, within)
    _draw_interval(canvas, box, x, data.score)
    draw_x_axis(canvas, box, x, "Normalcy score, NS")
    return canvas.render("density", title, _description(data))


def draw_no_density(site: str, reliability: Reliability, model: ModelProvenance, style: ChartStyle) -> str:
    """What an embedder gets where the score is withheld: the same frame, without any number."""
    title, verdict = f"{site_title(site)}: no score", verdict_text(reliability, is_scored=False)
    texts = ChartTexts(title, WITHHELD, "", model_caption(model), model_warning(model), [verdict])
    canvas, box = framed_canvas(style, texts, 120.0, gap=12.0)
    canvas.rect("nc-usual", box.left, box.top, box.width, box.height, radius=6)
    canvas.text("nc-text", box.left + box.width / 2, box.top + box.height / 2 + 4, "no score", "middle")
    return canvas.render("density", title, sentences([WITHHELD, verdict, model_caption(model), model_warning(model)]))


def _under(points: Sequence[tuple[float, float]], box: Box) -> str:
    return area_path(points, [(points[0][0], box.bottom), (points[-1][0], box.bottom)])


def _frame(data: DensityData) -> tuple[float, float]:
    """The density, large enough to see its shape, with the limit of ±2 that it is compared with where that is in reach,
    and with every threshold beside it."""
    low, high = data.density.ns[0], data.density.ns[-1]
    limit = USUAL[0] if data.score.expected_ns < NARROW else USUAL[1]
    reaches = [(limit, REACH), *((each.threshold, BESIDE) for each in data.score.exceedance)]
    shown = [at for at, reach in reaches if low - reach <= at <= high + reach]
    return padded(min(low, *shown, high), max(low, *shown, high))


def _limits(exceedance: Sequence[Exceedance]) -> tuple[float, float]:
    """On either side of 0 the first requested threshold; ±2 where none was requested."""
    narrow = max((each.threshold for each in exceedance if each.threshold < 0), default=USUAL[0])
    wide = min((each.threshold for each in exceedance if each.threshold >= 0), default=USUAL[1])
    return narrow, wide


def _beyond_limits(exceedance: Sequence[Exceedance], ns: Sequence[float]) -> Iterator[tuple[float, float]]:
    """What lies beyond the limit on either side of 0, as far as there is a density, on the axis or not."""
    narrow, wide = _limits(exceedance)
    if wide < ns[-1]:
        yield max(wide, ns[0]), ns[-1]
    if narrow > ns[0]:
        yield ns[0], min(narrow, ns[-1])


def _between(points: Sequence[tuple[float, float]], low: float, high: float) -> list[tuple[float, float]]:
    """The part of the curve between two ends, which lie between its points."""
    inner = [point for point in points if low < point[0] < high]
    return [(low, _height(points, low)), *inner, (high, _height(points, high))]


def _height(points: Sequence[tuple[float, float]], at: float) -> float:
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 <= at <= x2:
            return y1 + (y2 - y1) * (at - x1) / (x2 - x1)
    return points[0][1]


def _draw_thresholds(canvas: Canvas, box: Box, x: Scale, exceedance: Sequence[Exceedance]) -> None:
    for each in exceedance:
        at = x(each.threshold)
        canvas.path("nc-threshold", line_path([(at, box.top), (at, box.bottom)]))
    draw_strip(canvas, box, [StripLabel(x(each.threshold), box.top, _beyond(each)) for each in exceedance], THRESHOLD)


def _beyond(each: Exceedance) -> str:
    """The share beyond a threshold, seen from 0."""
    if each.threshold < 0:
        return f"{percent(each.probability_below)} below {short(each.threshold)}"
    return f"{percent(each.probability)} above {short(each.threshold)}"


def _draw_interval(canvas: Canvas, box: Box, x: Scale, score: Score) -> None:
    """On the axis: the ends of the interval, and the expected score."""
    low, high = x(score.hdi.low), x(score.hdi.high)
    canvas.path("nc-hdi", f"M{low:.1f} {box.bottom:.1f}L{high:.1f} {box.bottom:.1f}")
    for end in (low, high):
        canvas.path("nc-hdi", f"M{end:.1f} {box.bottom - 5:.1f}L{end:.1f} {box.bottom + 5:.1f}")
    if x.low <= score.expected_ns <= x.high:
        canvas.circle("nc-point", x(score.expected_ns), box.bottom, 5.5)


def _notes(data: DensityData, axis: tuple[float, float], has_usual: bool) -> str:
    hdi = share(data.score.hdi.probability)
    notes = [f"Darker area: {hdi} HDI. Dot: expected score."]
    if has_usual:
        notes.append("Grey: about 95% of people.")
    tinted, beyond = _without_line(data, axis)
    if tinted:
        notes.append(f"Orange: {', '.join(tinted)}.")
    if beyond:
        notes.append(f"Beyond the axis: {', '.join(beyond)}.")
    if data.with_error is not None:
        notes.append("Dashed curve: allowing for the stated measurement error.")
    return sentences(notes)


def _without_line(data: DensityData, axis: tuple[float, float]) -> tuple[list[str], list[str]]:
    """Of limits and thresholds that no line shows: what is drawn beyond them nevertheless, and what is not drawn."""
    (first, last), ns = axis, data.density.ns
    tinted: list[str] = []
    beyond: list[str] = []
    for each in data.score.exceedance:
        if not first <= each.threshold <= last:
            is_drawn = each.threshold > last if each.threshold < 0 else each.threshold < first
            (tinted if is_drawn else beyond).append(_beyond(each))
    requested = {each.threshold for each in data.score.exceedance}
    narrow, wide = _limits(data.score.exceedance)
    if wide not in requested and wide < ns[-1]:
        tinted.append(f"above {short(wide)}")
    if narrow not in requested and narrow > ns[0]:
        tinted.append(f"below {short(narrow)}")
    return tinted, beyond


def _description(data: DensityData) -> str:
    score = data.score
    beyond = [
        f"The probability that the score {verb} {short(each.threshold)} is {percent_in_words(probability)}."
        for each in score.exceedance
        for verb, probability in [
            ("is below", each.probability_below) if each.threshold < 0 else ("exceeds", each.probability)
        ]
    ]
    error = data.with_error and f"Allowing for the stated measurement error: {interval_text(data.with_error)}."
    return sentences(
        [
            f"Density of the normalcy score. Expected score {signed(score.expected_ns)}, {interval_text(score.hdi)}.",
            *beyond,
            error or "",
            data.verdict,
            model_caption(data.model),
            model_warning(data.model),
        ]
    )
