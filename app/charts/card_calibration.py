"""Pictures of a model's calibration, from the card: the PIT by tenths, and the tails by sex and age band."""

from collections.abc import Sequence

from app.charts.axes import Box, Look, Scale, draw_x_axis, draw_y_axis, framed
from app.charts.card_cohort import card_words
from app.charts.svg import Canvas, line_path
from app.charts.wording import sentences
from app.domain.card import EVERYBODY, Gate, ModelCard, TailCheck, tail_gate
from app.maths.statistics import count_limits

IDEAL_TAIL = 0.025
BY_CHANCE = 0.05  # shares outside the shaded range come by chance in so many samples
LABEL, ROW = 18.0, 15.0  # px: the line of a group's name, and that of one tail


def draw_pit(card: ModelCard, look: Look) -> str:
    """Where held-out people fall in their own predictive distribution; flat is calibrated."""
    deciles, people = card.calibration.pit_deciles, card.cohort.size
    low, high = (100.0 * count / people for count in count_limits(people, 1.0 / len(deciles), BY_CHANCE))
    words = card_words(
        card,
        "calibration (PIT)",
        f"{people} people, each predicted by a model trained without them ({card.calibration.folds} folds).",
        "Flat is ideal (line). Dashed: 95% of the bars lie between these by chance.",
    )
    canvas, box = framed(look, words, 210.0, 34.0)
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
    return canvas.render("pit", words.title, sentences([words.subtitle, *described]))


def draw_tails(card: ModelCard, gates: Sequence[Gate], look: Look) -> str:
    """People below and above their own central 95% interval, by group; `gates` have the limits of publication."""
    tails = card.calibration.tails
    words = card_words(
        card,
        "people outside their 95% interval",
        f"{card.cohort.size} people, each predicted by a model trained without them; 2.5% on either side is ideal.",
        "Hollow: below the interval. Filled: above it. Line: ideal. Shaded: where a model with ideal tails would lie "
        "in 95% of samples; the fewer people, the wider. Short strokes: limits of publication.",
    )
    limits = {gate.name: gate for gate in gates}
    step = LABEL + 2 * ROW + 10
    canvas, box = framed(look, words, step * len(tails), gap=18.0)
    largest = max(
        [share for one in tails for share in (one.below, one.above)] + [gate.high for gate in _tail_gates(gates)]
    )
    x = Scale(0.0, 106.0 * max(largest, 2 * IDEAL_TAIL), box.left, box.right)
    for k, group in enumerate(tails):
        _draw_group(canvas, box, x, box.top + step * k, group, limits)
    draw_x_axis(canvas, box, x, "people, %")
    described = [f"{_name(one)}: {100 * one.below:.1f}% below, {100 * one.above:.1f}% above." for one in tails]
    return canvas.render("tails", words.title, sentences([words.subtitle, *described]))


def _draw_group(canvas: Canvas, box: Box, x: Scale, top: float, group: TailCheck, limits: dict[str, Gate]) -> None:
    canvas.text("nc-text", box.left, top + 13, _name(group))
    canvas.text("nc-muted", box.right, top + 13, f"{100 * group.below:.1f}% / {100 * group.above:.1f}%", "end")
    low, high = (100.0 * count / group.people for count in count_limits(group.people, IDEAL_TAIL, BY_CHANCE))
    canvas.rect("nc-band nc-band-95", x(low), top + LABEL, x(high) - x(low), 2 * ROW, radius=2)
    for row, side in enumerate(("below", "above")):
        gate = limits.get(tail_gate(side, group.group))
        y = top + LABEL + ROW * row
        for limit in (100.0 * gate.low, 100.0 * gate.high) if gate else ():
            canvas.path("nc-hdi", line_path([(x(limit), y + 3), (x(limit), y + ROW - 3)]))
    ideal, middle = x(100 * IDEAL_TAIL), top + LABEL + ROW / 2
    canvas.path("nc-median", line_path([(ideal, top + LABEL), (ideal, top + LABEL + 2 * ROW)]))
    canvas.circle("nc-point nc-earlier", x(100 * group.below), middle, 4.5)
    canvas.circle("nc-point", x(100 * group.above), middle + ROW, 5.0)


def _tail_gates(gates: Sequence[Gate]) -> list[Gate]:
    return [gate for gate in gates if gate.name.startswith((tail_gate("below", ""), tail_gate("above", "")))]


def _name(group: TailCheck) -> str:
    name = "Everybody" if group.group == EVERYBODY else group.group[:1].upper() + group.group[1:]
    return f"{name}, {group.people}"
