"""Pictures of a model's cohort, from what the version stores: counts, ranges, means, and how sure the scores are.

No version stores a person. So there is no histogram of ages or body sizes: only counts by sex and age band, the ends of
every range, and means with standard deviations.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.charts.axes import Box, Look, Scale, Words, draw_x_axis, draw_y_axis, framed
from app.charts.svg import Canvas, line_path
from app.charts.wording import sentences
from app.domain.card import EVERYBODY, ModelCard, Range

BAR, LABEL = 16.0, 18.0  # px: height of a bar, and of the line of text above it
BIN = 0.05  # of W2
SIMULATED = "Simulated – evaluation model, not for care."
NOT_STORED = "A version stores no single person, so the distribution within these ranges cannot be shown."


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


def card_words(card: ModelCard, title: str, subtitle: str, notes: str) -> Words:
    """The texts around a picture of a card."""
    model = f"Model {card.site} {card.version}, cohort “{card.cohort.name}” (n = {card.cohort.size})."
    warning = SIMULATED if card.cohort.is_simulated else ""
    return Words(f"{card.site} {card.version}: {title}", subtitle, notes, model, warning)


def draw_counts(data: CohortData, look: Look) -> str:
    """How many people there are of each sex and age band."""
    groups = [tails for tails in data.card.calibration.tails if tails.group != EVERYBODY]
    cohort = data.card.cohort
    subtitle = f"{cohort.size} people: {cohort.men} male, {cohort.women} female."
    words = card_words(data.card, "who is in the cohort", subtitle, "")
    step = LABEL + BAR + 6
    canvas, box = framed(look, words, step * len(groups), gap=18.0)
    x = Scale(0.0, 1.08 * max(group.people for group in groups), box.left, box.right)
    for k, group in enumerate(groups):
        top = box.top + step * k
        canvas.text("nc-text", box.left, top + 13, _begun(group.group))
        share = f"{group.people} ({100 * group.people / cohort.size:.0f}%)"
        canvas.text("nc-muted", box.right, top + 13, share, "end")
        canvas.rect("nc-band nc-band-68", x(0.0), top + LABEL, x(group.people) - x(0.0), BAR, radius=2)
    draw_x_axis(canvas, box, x, "people")
    described = [f"{_begun(group.group)}: {group.people} people." for group in groups]
    return canvas.render("cohort", words.title, sentences([words.subtitle, *described]))


def draw_ranges(data: CohortData, look: Look) -> str:
    """Each range with its ends, the mean and one standard deviation."""
    rows = list(_rows(data))
    words = card_words(
        data.card,
        "ages and body sizes of the cohort",
        f"{data.card.cohort.size} people. Bars: smallest to largest.",
        f"Darker: mean ± 1 standard deviation; for age, the middle 98%. Dot: mean. {NOT_STORED}",
    )
    step = LABEL + BAR + 8
    canvas, box = framed(look, words, step * len(rows) - 56)  # no axis below: its height is for the rows
    for k, row in enumerate(rows):
        _draw_row(canvas, box, row, box.top - 14 + step * k)
    described = [f"{row.label}: {row.numbers}." for row in rows]
    return canvas.render("ranges", words.title, sentences([words.subtitle, *described, NOT_STORED]))


def draw_widths(data: CohortData, look: Look) -> str:
    """How sure a score of 2 would be for the people of the cohort: W2, with the limits of reliability."""
    quantiles, limits = data.card.width_quantiles, data.card.reliability
    middle, largest = quantiles[len(quantiles) // 2], quantiles[-1]
    words = card_words(
        data.card,
        "how sure scores are in the cohort",
        f"W2, the width of the 95% interval at a score of 2, of {data.card.cohort.size} people.",
        f"Median {middle:.2f}, largest {largest:.2f}. Dashed: limits of the verdicts.",
    )
    canvas, box = framed(look, words, 200.0, 34.0)
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
    return canvas.render("widths", words.title, sentences([words.subtitle, words.notes, above]))


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


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]
