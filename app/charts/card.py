"""Pictures of a model's card, from what the version stores: cohort, calibration, and how sure the scores are.

No version stores a person. So there is no histogram of ages or body sizes: only counts by sex and age band, the ends of
every range, and means with standard deviations.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from app.charts.axes import EDGE, Box, ChartStyle, ChartTexts, Scale, draw_x_axis, draw_y_axis, framed_canvas
from app.charts.svg import Canvas, line_path
from app.charts.wording import model_caption, model_warning, sentences, short, signed, site_title
from app.domain.card import EVERYBODY, Gate, ModelCard, Range, TailCheck, tail_gate
from app.formats.summaries import capitalised
from app.maths.statistics import count_limits
from app.schemas.answers import ModelProvenance
from app.schemas.charts import MapGrid

BAR, LABEL = 16.0, 18.0  # px: height of a bar, and of the line of text above it
TAIL = 15.0  # px: height of the line of one tail
IDEAL_TAIL = 0.025
BY_CHANCE = 0.05  # shares outside the shaded range come by chance in so many samples
BIN = 0.05  # of W2
SIMULATED = "Simulated – evaluation model, not for care."
NOT_STORED = "A version stores no single person, so the distribution within these ranges cannot be shown."
BREAKS = (0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)  # of the map, between the levels of the theme; at 1.0 W2 leads to caution
SWATCH = 30.0  # px, of a level in the key of the map
OVERLAP = 0.4  # px; cells that only touch leave hairlines when they are rasterised


@dataclass(frozen=True, slots=True)
class Average:
    """Of one covariate of the whole cohort."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class CohortData:
    card: ModelCard
    averages: Mapping[str, Average]  # by the name of a covariate: log_age or age_years, height_cm, weight_kg


@dataclass(frozen=True, slots=True)
class _Row:
    """A range, what most people lie in, and the mean; None where it is not stored."""

    label: str
    unit: str
    domain: Range  # of the axis, which the rows of one quantity share
    whole: Range
    inner: Range | None = None
    mean: float | None = None
    kind_of_mean: str = "mean"

    @property
    def numbers(self) -> str:
        middle = f", {self.kind_of_mean} {self.mean:.3g}" if self.mean is not None else ""
        return f"{self.whole.low:.4g} to {self.whole.high:.4g} {self.unit}{middle}"


def card_texts(card: ModelCard, title: str, subtitle: str, notes: str) -> ChartTexts:
    """The texts around a picture of a card."""
    model = f"Model {card.site} {card.version}, cohort “{card.cohort.name}” (n = {card.cohort.size})."
    warning = SIMULATED if card.cohort.is_simulated else ""
    return ChartTexts(f"{card.site} {card.version}: {title}", subtitle, notes, model, warning)


def draw_counts(data: CohortData, style: ChartStyle) -> str:
    """How many people there are of each sex and age band."""
    groups = [tails for tails in data.card.calibration.tails if tails.group != EVERYBODY]
    cohort = data.card.cohort
    subtitle = f"{cohort.size} people: {cohort.men} male, {cohort.women} female."
    texts = card_texts(data.card, "who is in the cohort", subtitle, "")
    step = LABEL + BAR + 6
    canvas, box = framed_canvas(style, texts, step * len(groups), gap=18.0)
    x = Scale(0.0, 1.08 * max(group.people for group in groups), box.left, box.right)
    for k, group in enumerate(groups):
        top = box.top + step * k
        canvas.text("nc-text", box.left, top + 13, capitalised(group.group))
        share = f"{group.people} ({100 * group.people / cohort.size:.0f}%)"
        canvas.text("nc-muted", box.right, top + 13, share, "end")
        canvas.rect("nc-band nc-band-68", x(0.0), top + LABEL, x(group.people) - x(0.0), BAR, radius=2)
    draw_x_axis(canvas, box, x, "people")
    described = [f"{capitalised(group.group)}: {group.people} people." for group in groups]
    return canvas.render("cohort", texts.title, sentences([texts.subtitle, *described]))


def draw_ranges(data: CohortData, style: ChartStyle) -> str:
    """Each range with its ends, the mean and one standard deviation."""
    rows = list(_rows(data))
    texts = card_texts(
        data.card,
        "ages and body sizes of the cohort",
        f"{data.card.cohort.size} people. Bars: smallest to largest.",
        f"Darker: mean ± 1 standard deviation; for age, the middle 98%. Dot: mean. {NOT_STORED}",
    )
    step = LABEL + BAR + 8
    canvas, box = framed_canvas(style, texts, step * len(rows) - 56)  # no axis below: its height is for the rows
    for k, row in enumerate(rows):
        _draw_row(canvas, box, row, box.top - 14 + step * k)
    described = [f"{row.label}: {row.numbers}." for row in rows]
    return canvas.render("ranges", texts.title, sentences([texts.subtitle, *described, NOT_STORED]))


def draw_widths(data: CohortData, style: ChartStyle) -> str:
    """How sure a score of 2 would be for the people of the cohort: W2, with the limits of reliability."""
    quantiles, limits = data.card.width_quantiles, data.card.reliability
    middle, largest = quantiles[len(quantiles) // 2], quantiles[-1]
    texts = card_texts(
        data.card,
        "how sure scores are in the cohort",
        f"W2, the width of the 95% interval at a score of 2, of {data.card.cohort.size} people.",
        f"Median {middle:.2f}, largest {largest:.2f}. Dashed: limits of the verdicts.",
    )
    canvas, box = framed_canvas(style, texts, 200.0, 34.0)
    last = math.ceil(max(largest, limits.width_not_reliable) / BIN + 1)
    shares = [_share_below(quantiles, BIN * (k + 1)) - _share_below(quantiles, BIN * k) for k in range(last)]
    x, y = Scale(0.0, BIN * last, box.left, box.right), Scale(0.0, 110.0 * max(shares), box.bottom, box.top)
    draw_y_axis(canvas, box, y, "People, %")
    for k, share in enumerate(shares):
        left, top = x(BIN * k), y(100.0 * share)
        canvas.rect("nc-band nc-band-68", left + 0.5, top, x(BIN * (k + 1)) - left - 1.0, box.bottom - top)
    for k, (limit, name) in enumerate(((limits.width_caution, "caution"), (limits.width_not_reliable, "no score"))):
        canvas.path("nc-threshold", line_path([(x(limit), box.top), (x(limit), box.bottom)]))
        near_the_end = x(limit) + 80 > box.right
        anchor, at = ("end", x(limit) - 6) if near_the_end else ("start", x(limit) + 6)
        canvas.text("nc-threshold-text", at, box.top + 12 + 16 * k, f"{name} above {limit:g}", anchor)
    draw_x_axis(canvas, box, x, "W2", 1)
    beyond = 100.0 * (1.0 - _share_below(quantiles, limits.width_caution))
    above = f"{beyond:.1f}% of the cohort are above the limit of caution."
    return canvas.render("widths", texts.title, sentences([texts.subtitle, texts.notes, above]))


def _rows(data: CohortData) -> Iterator[_Row]:
    ranges, averages = data.card.ranges, data.averages
    ages = ranges.age_years
    if "log_age" in averages:
        mean, kind = math.exp(averages["log_age"].mean), "geometric mean"
    else:
        mean, kind = averages["age_years"].mean, "mean"
    yield _Row("Age", "years", ages, ages, ranges.age_years_middle_98, mean, kind)
    for label, unit, spans, name in (
        ("Height", "cm", ranges.height_cm, "height_cm"),
        ("Weight", "kg", ranges.weight_kg, "weight_kg"),
    ):
        whole = Range(min(span.low for span in spans.values()), max(span.high for span in spans.values()))
        average = averages[name]
        middle = Range(max(average.mean - average.sd, whole.low), min(average.mean + average.sd, whole.high))
        yield _Row(label, unit, whole, whole, middle, average.mean)
        yield from (_Row(f"{label}, {sex}", unit, whole, span) for sex, span in sorted(spans.items()))
    yield _Row("Body mass index", "kg/m²", ranges.bmi_kg_m2, ranges.bmi_kg_m2)


def _draw_row(canvas: Canvas, box: Box, row: _Row, top: float) -> None:
    x = Scale(row.domain.low, row.domain.high, box.left, box.right)
    canvas.text("nc-text", box.left, top + 13, row.label)
    canvas.text("nc-muted", box.right, top + 13, row.numbers, "end")
    top += LABEL
    canvas.rect("nc-band nc-band-95", x(row.whole.low), top, x(row.whole.high) - x(row.whole.low), BAR, radius=2)
    if row.inner is not None:
        canvas.rect("nc-band nc-band-68", x(row.inner.low), top, x(row.inner.high) - x(row.inner.low), BAR)
    if row.mean is not None:
        canvas.circle("nc-point", x(row.mean), top + BAR / 2, 5.5)


def _share_below(quantiles: Sequence[float], value: float) -> float:
    """Between evenly spaced quantiles by a straight line."""
    return float(np.interp(value, quantiles, np.linspace(0.0, 1.0, len(quantiles)), left=0.0, right=1.0))


def draw_pit(card: ModelCard, style: ChartStyle) -> str:
    """Where held-out people fall in their own predictive distribution; flat is calibrated."""
    deciles, people = card.calibration.pit_deciles, card.cohort.size
    low, high = (100.0 * count / people for count in count_limits(people, 1.0 / len(deciles), BY_CHANCE))
    texts = card_texts(
        card,
        "calibration (PIT)",
        f"{people} people, each predicted by a model trained without them ({card.calibration.folds} folds).",
        "Flat is ideal (line). Dashed: 95% of the bars lie between these by chance.",
    )
    canvas, box = framed_canvas(style, texts, 210.0, 34.0)
    shares = [100.0 * share for share in deciles]
    x = Scale(0.0, 1.0, box.left, box.right)
    y = Scale(0.0, 1.12 * max(*shares, high), box.bottom, box.top)
    draw_y_axis(canvas, box, y, "People, %")
    for k, share in enumerate(shares):
        left, right = x(k / len(shares)), x((k + 1) / len(shares))
        canvas.rect("nc-band nc-band-68", left + 1.0, y(share), right - left - 2.0, box.bottom - y(share))
    ideal = 100.0 / len(shares)
    canvas.path("nc-median", line_path([(box.left, y(ideal)), (box.right, y(ideal))]))
    for limit in (low, high):
        canvas.path("nc-threshold", line_path([(box.left, y(limit)), (box.right, y(limit))]))
    draw_x_axis(canvas, box, x, "position in the predictive distribution", 1)
    outside = sum(not low <= share <= high for share in shares)
    listed = ", ".join(f"{share:.1f}%" for share in shares)
    described = [
        f"Shares of people in each tenth of their predictive distribution: {listed}; {ideal:g}% is ideal.",
        f"{outside} of {len(shares)} lie outside {low:.1f}% to {high:.1f}%, which holds 95% by chance.",
    ]
    return canvas.render("pit", texts.title, sentences([texts.subtitle, *described]))


def draw_tails(card: ModelCard, gates: Sequence[Gate], style: ChartStyle) -> str:
    """People below and above their own central 95% interval, by group; `gates` have the limits of publication."""
    tails = card.calibration.tails
    texts = card_texts(
        card,
        "people outside their 95% interval",
        f"{card.cohort.size} people, each predicted by a model trained without them; 2.5% on either side is ideal.",
        "Hollow: below the interval. Filled: above it. Line: ideal. Shaded: where a model with ideal tails would lie "
        "in 95% of samples; the fewer people, the wider. Short strokes: limits of publication.",
    )
    limits = {gate.name: gate for gate in gates}
    step = LABEL + 2 * TAIL + 10
    canvas, box = framed_canvas(style, texts, step * len(tails), gap=18.0)
    largest = max(
        [share for one in tails for share in (one.below, one.above)] + [gate.high for gate in _tail_gates(gates)]
    )
    x = Scale(0.0, 106.0 * max(largest, 2 * IDEAL_TAIL), box.left, box.right)
    for k, group in enumerate(tails):
        _draw_group(canvas, box, x, box.top + step * k, group, limits)
    draw_x_axis(canvas, box, x, "people, %")
    described = [f"{_name(one)}: {100 * one.below:.1f}% below, {100 * one.above:.1f}% above." for one in tails]
    return canvas.render("tails", texts.title, sentences([texts.subtitle, *described]))


def _draw_group(canvas: Canvas, box: Box, x: Scale, top: float, group: TailCheck, limits: dict[str, Gate]) -> None:
    canvas.text("nc-text", box.left, top + 13, _name(group))
    canvas.text("nc-muted", box.right, top + 13, f"{100 * group.below:.1f}% / {100 * group.above:.1f}%", "end")
    low, high = (100.0 * count / group.people for count in count_limits(group.people, IDEAL_TAIL, BY_CHANCE))
    canvas.rect("nc-band nc-band-95", x(low), top + LABEL, x(high) - x(low), 2 * TAIL, radius=2)
    for row, side in enumerate(("below", "above")):
        gate = limits.get(tail_gate(side, group.group))
        y = top + LABEL + TAIL * row
        for limit in (100.0 * gate.low, 100.0 * gate.high) if gate else ():
            canvas.path("nc-hdi", line_path([(x(limit), y + 3), (x(limit), y + TAIL - 3)]))
    ideal, middle = x(100 * IDEAL_TAIL), top + LABEL + TAIL / 2
    canvas.path("nc-median", line_path([(ideal, top + LABEL), (ideal, top + LABEL + 2 * TAIL)]))
    canvas.circle("nc-point nc-earlier", x(100 * group.below), middle, 4.5)
    canvas.circle("nc-point", x(100 * group.above), middle + TAIL, 5.0)


def _tail_gates(gates: Sequence[Gate]) -> list[Gate]:
    return [gate for gate in gates if gate.name.startswith((tail_gate("below", ""), tail_gate("above", "")))]


def _name(group: TailCheck) -> str:
    name = "Everybody" if group.group == EVERYBODY else capitalised(group.group)
    return f"{name}, {group.people}"


@dataclass(frozen=True, slots=True)
class MapData:
    site: str
    sex: str
    diameter_mm: float | None
    grid: MapGrid
    model: ModelProvenance


def draw_reliability_map(data: MapData, style: ChartStyle) -> str:
    """How wide the interval of a score is, over age and body surface area."""
    title = f"{site_title(data.site)}: reliability map"
    notes = (
        "Outlined: verdict ok; outside it: caution. Grey: not reliable, no score. "
        f"Height and weight at the median body mass index for age. {data.grid.bmi_source}"
    )
    texts = ChartTexts(title, _map_subtitle(data), notes, model_caption(data.model), model_warning(data.model))
    canvas, box = framed_canvas(style, texts, min(max(0.5 * style.width, 230.0), 420.0), 30.0, 4.0, gap=76.0)
    _draw_legend(canvas, box)
    x_edges = _cell_edges(data.grid.age_years, box.left, box.right)
    y_edges = _cell_edges(data.grid.bsa_m2, box.bottom, box.top)
    _draw_cells(canvas, data.grid, x_edges, y_edges)
    canvas.path("nc-contour", "".join(_contour(data.grid, x_edges, y_edges)))
    draw_y_axis(canvas, box, _cell_scale(data.grid.bsa_m2, y_edges), "Body surface area, m²", 1, lines=False)
    draw_x_axis(canvas, box, _cell_scale(data.grid.age_years, x_edges), "Age, years")
    return canvas.render("reliability-map", title, _map_description(data))


def _cell_edges(centres: Sequence[float], start: float, end: float) -> list[float]:
    """Of cells of equal size."""
    return [start + (end - start) * k / len(centres) for k in range(len(centres) + 1)]


def _cell_scale(centres: Sequence[float], edges: Sequence[float]) -> Scale:
    """The values at the middles of the first and the last cell."""
    half = (edges[1] - edges[0]) / 2
    return Scale(centres[0], centres[-1], edges[0] + half, edges[-1] - half)


def _draw_legend(canvas: Canvas, box: Box) -> None:
    size = min(SWATCH, (canvas.width - 2 * EDGE) / (len(BREAKS) + 1))
    y = box.top - 62
    for level in range(len(BREAKS) + 1):
        canvas.rect(f"nc-level nc-level-{level}", EDGE + size * level, y, size + OVERLAP, 10)
    for k, limit in enumerate(BREAKS, 1):
        canvas.text("nc-muted", EDGE + size * k, y + 25, f"{limit:g}", "middle")


def _draw_cells(canvas: Canvas, grid: MapGrid, x_edges: Sequence[float], y_edges: Sequence[float]) -> None:
    """One path for each colour, of runs of cells in a row."""
    paths: dict[str, list[str]] = defaultdict(list)
    for row, (widths, verdicts) in enumerate(zip(grid.width, grid.verdict, strict=True)):
        top, height = y_edges[row + 1], y_edges[row] - y_edges[row + 1] + OVERLAP
        names = [
            "nc-not-reliable" if verdict == "not_reliable" else f"nc-level nc-level-{bisect_right(BREAKS, width)}"
            for width, verdict in zip(widths, verdicts, strict=True)
        ]
        for name, run in groupby(range(len(names)), key=names.__getitem__):
            columns = list(run)
            left, right = x_edges[columns[0]], x_edges[columns[-1] + 1] + OVERLAP
            paths[name].append(f"M{left:.1f} {top:.1f}H{right:.1f}v{height:.1f}H{left:.1f}Z")
    for name in sorted(paths):
        canvas.path(name, "".join(paths[name]))


def _contour(grid: MapGrid, x_edges: Sequence[float], y_edges: Sequence[float]) -> Iterator[str]:
    """The edges between cells of which exactly one is `ok`."""
    is_ok = [[verdict == "ok" for verdict in row] for row in grid.verdict]
    for row, cells in enumerate(is_ok):
        for column, (left, right) in enumerate(pairwise(cells), 1):
            if left != right:
                yield f"M{x_edges[column]:.1f} {y_edges[row]:.1f}V{y_edges[row + 1]:.1f}"
    for row, (lower, upper) in enumerate(pairwise(is_ok), 1):
        for column, (below, above) in enumerate(zip(lower, upper, strict=True)):
            if below != above:
                yield f"M{x_edges[column]:.1f} {y_edges[row]:.1f}H{x_edges[column + 1]:.1f}"


def _map_subtitle(data: MapData) -> str:
    at = "a score of 2 (W2)" if data.diameter_mm is None else f"the score of {short(data.diameter_mm)} mm"
    return f"Width of the 95% HDI of {at}. Reference group: {data.sex}."


def _map_description(data: MapData) -> str:
    grid = data.grid
    verdicts = [verdict for row in grid.verdict for verdict in row]
    shown = [
        width
        for widths, row in zip(grid.width, grid.verdict, strict=True)
        for width, verdict in zip(widths, row, strict=True)
        if verdict != "not_reliable"
    ]
    shares = {name: f"{100 * verdicts.count(name) / len(verdicts):.0f}%" for name in ("ok", "caution", "not_reliable")}
    spans = f" There the width is {signed(min(shown))} to {signed(max(shown))}." if shown else ""
    return sentences(
        [
            _map_subtitle(data),
            f"Ages from {grid.age_years[0]:.1f} to {grid.age_years[-1]:.1f} years, body surface areas from "
            f"{signed(grid.bsa_m2[0])} to {signed(grid.bsa_m2[-1])} m².",
            f"Of this map {shares['ok']} is ok, {shares['caution']} needs caution and {shares['not_reliable']} is not "
            f"reliable. The first two are coloured by the width.{spans}",
            grid.bmi_source,
            model_caption(data.model),
            model_warning(data.model),
        ]
    )
